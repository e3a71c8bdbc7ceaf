"""`strandline completion`: a script with which a shell completes commands, options and their values.

The library for commands writes it from the same declarations as the help. It names everything, so that the shell starts
nothing when somebody presses Tab.
"""

from typing import Literal

from cyclopts import App

Shell = Literal["bash", "zsh", "fish"]


def completion(shell: Shell, /) -> None:
    """Print a completion script. Write it again after an update, or when an extra was installed.

    bash: strandline completion bash > ~/.local/share/bash-completion/completions/strandline

    zsh: strandline completion zsh > ~/.zfunc/_cyclopts_strandline (a folder of your fpath, before compinit runs; zsh
    needs the file's name to be this one)

    fish: strandline completion fish > ~/.config/fish/completions/strandline.fish

    Parameters
    ----------
    shell
        bash, zsh or fish
    """
    from strandline.cli.app import app

    name_only_what_is_missing(app)
    print(app.generate_completion(shell=shell))


def name_only_what_is_missing(app: App) -> None:
    """A command whose extra is not installed is completed by its name, without options."""
    for name in [name for name in app if not name.startswith("-")]:
        try:
            name_only_what_is_missing(app[name])
        except ImportError:
            del app[name]
            app.command(not_installed, name=name)


def not_installed() -> None:
    """An extra is missing: run the command to see which."""

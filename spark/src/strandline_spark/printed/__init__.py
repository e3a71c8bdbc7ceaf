"""What the commands on Spark print with --json, as `strandline.cli.printed` has it for the others. Nothing here needs
Spark."""

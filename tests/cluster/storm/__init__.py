"""A storm over real processes, and a judgement of it that shares no code with what it judges."""

"""How far readers are behind topics, consumer groups and streaming queries alike, sampled over time."""

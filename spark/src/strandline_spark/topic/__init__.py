"""The topic source, format "strandline": topics as DataFrames, with the options of Spark's Kafka connector."""

"""The place of Spark: executors that sum their part of the rows by the door's own pass. It offers nothing yet."""

"""What the people who run the coordinator may do."""

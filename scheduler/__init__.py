"""The clock of the coordinator: finds rows that are due and rings for them. It knows no rule of the lottery."""

"""What an approved operator may do (interface section 4.2)."""

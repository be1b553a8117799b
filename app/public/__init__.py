"""What anybody may read, and the application form (interface section 4.1)."""

"""What can go wrong before the coordinator runs.

    Failure             everything below
    ├── EngineError     a server could not be started or reached
    ├── AlreadyRunning  another process holds the data folder
    └── StartFailure    a process of ours would not start or stay up

One rule: a message is for the person at the terminal. It says what is wrong in one line (a program's own last
words may follow) and never shows a password.
"""


class Failure(Exception):
    """The command stops here, prints the message and returns 1."""


class EngineError(Failure):
    """A server could not be started or reached."""


class AlreadyRunning(Failure):
    """Another process holds the data folder."""


class StartFailure(Failure):
    """A process of ours would not start or stay up."""

"""What can go wrong, as a tree. Every message says what was seen, what was wanted, and what to do next.

    DeadheatError
    ├── ConfigError (ValueError)         a config file or option that cannot be run as written
    ├── ModelReferenceError (ValueError) a model reference that is malformed or cannot be reached
    ├── UnsupportedModelError (ValueError)  a model whose cache or attention the engine cannot drive
    ├── TaskError (ValueError)           a task with no problems, or whose checker fails its own gold answers
    ├── CheckerError (RuntimeError)      a checker raised or ran out of time; the rollout is unscored, never zero
    ├── NotFiniteError (ValueError)      a score that is infinite or not a number; the rollout is unscored
    ├── PromptTooLongError (ValueError)  prompt plus completion cap exceeds the model's context
    ├── DivergedError (ArithmeticError)  an update produced a loss, gradient or parameter that is not finite
    ├── RunFolderError (OSError)         a run folder that is in use, unwritable, full, or holds another run
    ├── ArchiveError (ValueError)        a record on disk that is torn or not in the schema
    ├── UncoupledError (RuntimeError)    two arms that should share their draws do not
    ├── ClusterError (RuntimeError)      a Ray cluster that cannot be reached, lacks a resource or a file, or lost a worker
    └── StatsError (ValueError)          a question the given numbers cannot answer

A bad rollout is data (unscored, with a reason); a bad program is a crash.
"""


class DeadheatError(Exception):
    """Base of every error this package raises on purpose."""


class ConfigError(DeadheatError, ValueError):
    """A config file or option that cannot be run as written."""


class ModelReferenceError(DeadheatError, ValueError):
    """A model reference that is malformed or cannot be reached."""


class UnsupportedModelError(DeadheatError, ValueError):
    """A model whose cache or attention the engine cannot drive."""


class TaskError(DeadheatError, ValueError):
    """A task with no problems, or whose checker fails its own gold answers."""


class CheckerError(DeadheatError, RuntimeError):
    """A checker raised or ran out of time."""


class NotFiniteError(DeadheatError, ValueError):
    """A score that is infinite or not a number."""


class PromptTooLongError(DeadheatError, ValueError):
    """Prompt plus completion cap exceeds the model's context."""


class DivergedError(DeadheatError, ArithmeticError):
    """An update produced a loss, gradient or parameter that is not finite."""


class RunFolderError(DeadheatError, OSError):
    """A run folder that is in use, unwritable, full, or holds another run."""


class ArchiveError(DeadheatError, ValueError):
    """A record on disk that is torn or not in the schema."""


class UncoupledError(DeadheatError, RuntimeError):
    """Two arms that should share their draws do not."""


class ClusterError(DeadheatError, RuntimeError):
    """A Ray cluster that cannot be reached, lacks a resource or a file, or lost a worker."""


class StatsError(DeadheatError, ValueError):
    """A question the given numbers cannot answer."""

"""A run's submissions graded by a Dask cluster's workers; the course's files are read and written here alone."""

from collections.abc import Iterable, Iterator
from concurrent.futures import Future

from autograder.errors import CourseError
from autograder.grading.chapter_run import ChapterRun
from autograder.grading.cluster import SECONDS_BETWEEN_LOOKS, Cluster, explain
from autograder.grading.elsewhere import Order, Served, packed
from autograder.grading.keys import environment
from autograder.grading.outcome import Outcome, explain_failure, read
from autograder.grading.step import failed
from autograder.grading.submissions import HandedIn, Submission
from autograder.grading.workers import through


def outcomes_on_cluster(
    run: ChapterRun, due: Iterable[Submission], address: str
) -> Iterator[tuple[Submission, Outcome]]:
    """Yield each submission with what a worker made of it.

    Raises:
        CourseError: The scheduler does not answer, has no workers, or they cannot grade.
    """
    shared = Order(run.kit, run.secret, run.cell_seconds, run.limits, run.options.sandbox, environment())
    order = packed(shared)
    handed_in: dict[str, HandedIn] = {}
    warnings: dict[str, str] = {}
    with Cluster(address, run.options.workers, run.log) as cluster:

        def send(submission: Submission) -> Future[Served]:
            found = handed_in[submission.student] = read(submission, run.kit)
            if found.data is not None:
                return cluster.send(order, submission.student, found.data, found.files)
            unread: Future[Served] = Future()
            unread.set_result(Served(failed(run.kit, found.reason)))
            return unread

        for submission, future in through(send, due, cluster.room, cluster.look, SECONDS_BETWEEN_LOOKS):
            served = served_or_failed(run, cluster, submission, future)
            if served.host and served.host not in warnings:
                warnings[served.host] = served.warning
                worst = next(filter(None, warnings.values()), "")
                run.events.write("sandbox", host=served.host, kind=served.sandbox, warning=worst)
            found = handed_in.pop(submission.student)
            yield submission, Outcome(found, run.key(found), served.graded)


def served_or_failed(run: ChapterRun, cluster: Cluster, submission: Submission, future: Future[Served]) -> Served:
    """Return what a worker made of a submission; an error there is this submission's result.

    Raises:
        CourseError: The error is the cluster's own.
    """
    try:
        return cluster.served(future)
    except CourseError:
        raise
    except Exception as error:
        run.log.error("Grading %s: %s", submission.student, error)
        return Served(failed(run.kit, explain(error) or explain_failure(error)))

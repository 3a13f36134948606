"""Reports about whole classes: grading again, many at a time, the gradebook, exports, and walls between students."""

from autograder.grading.field_reports.report import GRADED_TOGETHER, Report

HERE = "autograder/grading/field_reports"
ENGINE = "autograder/grading/engine_test.py"
GRADEBOOK = "autograder/grading/gradebook_test.py"
KILLED = "autograder/grading/killed_test.py"
EXPORT = "autograder/collecting/export_test.py"
SANDBOX, POOL = "autograder/grading/sandbox_test.py", "autograder/grading/pool_test.py"
MANY = f"{HERE}/many_test.py"
SURVIVES = f"{ENGINE}::test_a_persons_points_and_comment_survive_and_reach_the_results"

OF_CLASSES = [
    Report(
        "43",
        "Grading again leaves an old `No response` and asks for a person anew.",
        "The automatic part is replaced, a person's part is kept, and the state follows from both.",
        tests=(f"{HERE}/regrading_test.py::test_an_essay_that_was_written_since_is_no_longer_unanswered", SURVIVES),
    ),
    Report(
        "44",
        "Grading again wipes a person's grades.",
        "They are kept, and every change of an automatic grade leaves a line with before and after.",
        tests=(
            f"{GRADEBOOK}::test_a_persons_points_and_comments_survive",
            f"{GRADEBOOK}::test_every_changed_grade_leaves_a_line_and_no_other",
            SURVIVES,
        ),
    ),
    Report(
        "46",
        "One new submission of 200 means that all are graded again.",
        "Only what has changed is graded, or the one student that is named.",
        tests=(
            f"{ENGINE}::test_what_has_not_changed_is_not_graded_again",
            f"{ENGINE}::test_one_student_is_graded_and_the_others_results_stay",
            f"{ENGINE}::test_nothing_runs_when_nothing_has_changed",
        ),
    ),
    Report(
        "47",
        "Grading on several cores needs several gradebooks that are merged by hand.",
        "Many at a time, one writer, and the same grades as one by one.",
        tests=(
            f"{MANY}::test_many_at_a_time_give_the_same_as_one_by_one",
            "autograder/grading/workers_test.py::test_every_job_is_done_and_only_a_few_are_taken_ahead",
        ),
    ),
    Report(
        "49",
        "A database server runs out of connections halfway through a class.",
        "A run holds one connection for all writing, however large the class.",
        tests=(f"{MANY}::test_connections_to_the_gradebook_do_not_grow_with_the_class",),
    ),
    Report(
        "50",
        "A database that another program has locked loses the submissions graded meanwhile.",
        "It is waited for; one that stays locked ends the run in a sentence, and the next run goes on from there.",
        tests=(
            f"{GRADEBOOK}::test_a_locked_gradebook_is_waited_for",
            f"{GRADEBOOK}::test_a_gradebook_that_stays_locked_is_told_in_a_sentence",
        ),
    ),
    Report(
        "52",
        "A class of 250 ends with too many open files.",
        "Files and sockets that are open do not grow with the class.",
        tests=(f"{HERE}/field_reports_test.py::test_open_files_do_not_grow_with_the_class",),
    ),
    Report(
        "79",
        "Students can find others' submissions, or hand in under another's name.",
        "Whose a file is, the LMS's own names say; names that lead elsewhere are left out; nobody else's work is seen.",
        tests=(
            "autograder/collecting/collect_test.py::test_who_is_not_in_the_roster_is_listed_and_never_guessed",
            "autograder/collecting/collect_test.py::test_a_name_that_leads_out_is_left_out",
            f"{SANDBOX}::test_a_notebook_cannot",
        ),
    ),
    Report(
        "80",
        "Students' code runs in the instructor's own account, beside the gradebook.",
        "It runs confined by default, and grading refuses where nothing confines.",
        tests=(f"{SANDBOX}::test_a_notebook_cannot", f"{POOL}::test_without_any_sandbox_grading_refuses"),
    ),
    Report(
        "82",
        "Feedback is lost when a file changes after it was handed in, since its place hangs on a hash.",
        "A page lies under student and chapter, and an LMS gets it back under the name that it gave.",
        tests=(
            f"{HERE}/regrading_test.py::test_a_page_stays_in_its_place_when_the_submission_changes",
            f"{EXPORT}::test_feedback_goes_back_under_the_names_of_the_lms",
        ),
    ),
    Report(
        "83",
        "The export of 600 students takes minutes.",
        "The number of questions to the database does not grow with the class.",
        tests=(f"{MANY}::test_an_export_asks_the_database_as_often_for_many_as_for_few",),
    ),
    Report(
        "85",
        "No progress, no time left, and nobody knows which cell is slow.",
        "A bar counts and tells the time left, the log has every submission's time, the report the slowest check.",
        tests=(
            f"{HERE}/field_reports_test.py::test_progress_counts_every_submission_and_every_failure",
            f"{ENGINE}::test_the_log_has_a_line_for_each_submission",
            "autograder/reports/item_statistics_test.py::test_the_slowest_check_has_a_name",
        ),
    ),
    Report(
        "86",
        "No search for copies, and no statistics by question.",
        "The class report ranks pairs that are more alike than others, and has a table by exercise.",
        tests=(
            "autograder/reports/similarity_test.py::test_a_renamed_copy_is_found_and_honest_work_is_not",
            "autograder/reports/item_statistics_test.py::test_the_share_is_the_mean_of_the_points",
            "autograder/reports/item_statistics_test.py::test_discrimination_is_the_correlation_with_the_other_exercises",
        ),
    ),
    Report(
        "b",
        "Grades are stored cell by cell, so that an error halfway leaves half a row.",
        "One submission is one transaction.",
        tests=(f"{GRADEBOOK}::test_an_error_on_the_way_leaves_nothing_half_written",),
    ),
    Report(
        "c",
        "The old score stays when a newer submission cannot be graded.",
        "It is withdrawn, with a line that says so.",
        tests=(
            f"{ENGINE}::test_a_resubmission_that_cannot_be_graded_loses_the_old_score",
            f"{GRADEBOOK}::test_a_failed_submission_withdraws_automatic_points_alone",
        ),
    ),
    Report(
        "d",
        "After a run was killed, the next one skips what was half done, without a grade.",
        "The next run ends where an undisturbed one does.",
        tests=(
            f"{KILLED}::test_a_second_run_ends_where_an_undisturbed_one_does",
            f"{KILLED}::test_a_second_run_ends_where_an_undisturbed_one_does_whatever_the_moment",
        ),
    ),
    Report(
        "e",
        "A comma in a name shifts the columns of the export.",
        "Every text is quoted.",
        tests=(
            f"{EXPORT}::test_the_plain_table_has_everybody_with_names_points_penalty_and_exercises",
            f"{EXPORT}::test_no_cell_is_a_formula",
        ),
    ),
    Report(
        "f",
        "Without nbgrader's folder on the search path, the first command leaves a gradebook without a version.",
        "The search path does not matter.",
        tests=(f"{HERE}/odd_world_test.py::test_a_class_is_graded_in_a_locale_of_ascii_without_a_search_path",),
    ),
    Report(
        "i",
        "A kernel that does not start is not tried again, and the grader keeps no limit on a notebook's size.",
        "A kernel is tried twice; the size is looked at before a file is read.",
        tests=(
            GRADED_TOGETHER,
            f"{MANY}::test_a_kernel_that_does_not_start_is_tried_once_more",
            "autograder/collecting/collect_test.py::test_a_file_that_is_too_large_is_left_out",
        ),
    ),
]

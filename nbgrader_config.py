"""What stock nbgrader needs to know of this course; run its commands from this folder."""

c = get_config()  # pyright: ignore[reportUndefinedVariable]  # nbgrader puts it there

c.CourseDirectory.course_id = "inside-a-transformer-block"
c.CourseDirectory.source_directory = "build/source"
c.CourseDirectory.release_directory = "chapters"
c.CourseDirectory.submitted_directory = "submitted"
c.CourseDirectory.autograded_directory = "autograded"
c.CourseDirectory.feedback_directory = "feedback"

c.ClearSolutions.code_stub = {"python": "# Your code replaces these two lines.\nraise NotImplementedError()"}
c.ClearSolutions.text_stub = "*Your answer replaces this line.*"

# nbgrader's own steps, with the starters of bug hunts put in once the solutions are out.
c.GenerateAssignment.preprocessors = [
    "nbgrader.preprocessors.LockCells",
    "nbgrader.preprocessors.ClearSolutions",
    "autograder.authoring.starter.InsertStarter",
    "nbgrader.preprocessors.ClearOutput",
    "nbgrader.preprocessors.CheckCellMetadata",
    "nbgrader.preprocessors.ComputeChecksums",
    "nbgrader.preprocessors.SaveCells",
    "nbgrader.preprocessors.ClearHiddenTests",
    "nbgrader.preprocessors.ClearMarkScheme",
    "nbgrader.preprocessors.ComputeChecksums",
    "nbgrader.preprocessors.CheckCellMetadata",
    "autograder.authoring.handed_out.NoteWhatIsHandedOut",
]

# A cell may take as long as a whole chapter is allowed to, so only an endless one meets the limit.
c.Execute.timeout = 60
c.LimitOutput.max_lines = 1000
c.LimitOutput.max_traceback = 100

# The page that a student gets back: points and reasons first; it needs neither the network nor a script.
c.GenerateFeedback.exporter_class = "autograder.reports.feedback.FeedbackPage"
c.GenerateFeedback.preprocessors = ["autograder.reports.feedback.GetPoints"]

# What being late costs: nothing for a quarter of an hour, then 10 % of the points for each day begun, at most half.
c.AssignLatePenalties.plugin_class = "autograder.late_policy.LatePolicy"
c.LatePolicy.grace_minutes = 15
c.LatePolicy.percent_per_day = 10
c.LatePolicy.cap_percent = 50

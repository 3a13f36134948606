"""From an LMS to nbgrader's folders and back: collect what was handed in, export points, return feedback."""

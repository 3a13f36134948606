"""The commands of `course`, one module each; heavy libraries load only when a command runs."""

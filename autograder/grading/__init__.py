"""How a class is graded."""

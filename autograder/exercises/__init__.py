"""What counts as right, one package per chapter and one module per exercise."""

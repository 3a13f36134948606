"""Chapter 03: norms and residual connections."""

CHAPTER = "03_norms_and_residuals"

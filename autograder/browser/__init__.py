"""The course as people meet it: a real JupyterLab in a real browser."""

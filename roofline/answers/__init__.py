"""One function a question, with the same name and arguments as the command; each returns an `Answer`."""

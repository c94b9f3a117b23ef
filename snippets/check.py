def check(question):
    """Run the checks of a question on the answer above, and print what they say."""
    import linecache
    import os

    if "CHECKS_LEFT_OUT" in os.environ:
        print("checks, left out at grading")
        return
    if question not in CHECKS:
        print(f"no checks of {question!r}. Fix: name one of {', '.join(CHECKS)}.")
        return
    place, text, tests = f"checks of {question}", CHECKS[question], {}
    linecache.cache[place] = len(text), None, text.splitlines(True), place
    exec(compile(text, place, "exec"), tests)
    for name in [name for name in tests if name.startswith("test_")]:
        try:
            tests[name](dict(globals()))
        except Exception as error:
            print(f"{name} failed: {_why_it_failed(error, tests)}")
            return
        print(f"{name} passed")


def _why_it_failed(error, tests):
    """What an error says, and the line of the notebook or of a check it came from."""
    import linecache
    import traceback

    for frame, number in traceback.walk_tb(error.__traceback__):
        if frame.f_globals is globals() or frame.f_globals is tests:
            last, line = frame, number  # deeper ones are those of libraries
    said = f"{type(error).__name__}: {error}"
    if last.f_globals is tests and isinstance(error, AssertionError):
        return str(error)
    if last.f_globals is tests and isinstance(error, KeyError):
        said = f"there is no {error} in the notebook, or a key is missing. "
        said += "Fix: run the cell above, and keep the names that are given."
    text = linecache.getline(last.f_code.co_filename, line).strip()
    return f"{said}\n(in {last.f_code.co_name}, line {line}: {text})"

def have(*requirements):
    """Tell whether packages that only some cells need are here; if not, print the fix.

    Takes the same texts as `require`, such as "torch>=2.9".
    """
    try:
        require(*requirements)
    except ImportError as error:
        needs = str(error).removeprefix("this chapter needs ")
        print(f"Left out: the cells that need {needs}")
        return False
    return True

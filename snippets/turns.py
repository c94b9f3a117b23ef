def measure_in_turns(*functions, repeats=9, at_least=0.01, budget=2.0):
    """Time functions that take turns: `repeats` rounds, every second one backwards.

    A sample is as many calls as fill `at_least` seconds, or one. What would take more
    than `budget` seconds after the first calls is left out, and that is said.

    Returns a Timing for each.
    """
    firsts = seconds = [seconds_per_call(function) for function in functions]
    rounds = []
    if max(firsts) <= budget:
        seconds = [seconds_per_call(function) for function in functions]
        calls = [int(at_least / each) + 1 for each in seconds]
        one_round = sum(n * each for n, each in zip(calls, seconds))
        for number in range(min(repeats, int(budget / one_round))):
            order = slice(None, None, -1 if number % 2 else 1)  # so a drift cancels
            turn = [*zip(functions, calls)][order]
            rounds.append([seconds_per_call(f, n) for f, n in turn][order])
    if len(rounds) < repeats:
        print(f"Measured less: {len(rounds) or 1} of {repeats} samples,", end=" ")
        print(f"because a call takes {max(seconds):.2g} s")
    columns = zip(*(rounds or [seconds]))
    return [timing_of(first, list(column)) for first, column in zip(firsts, columns)]

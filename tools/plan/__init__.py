"""What a GPU would give: the compiler's plan for each card, and a script that measures.

`python -m tools.plan` asks XLA's compiler of each card what it makes of the three
models; `python -m tools.plan.measure` times them on the machine that it runs on. Both
write to `results/`, from which the page *What a GPU would give* is made.
"""

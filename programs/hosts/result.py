"""The model of the checkpoint in this folder, for predictions."""

import checkpoint
import problem

model, optimizer, state = problem.network()
step, losses = checkpoint.load("checkpoint.npz", state)
if not step:
    raise SystemExit("no checkpoint.npz here yet; fit_jax.py writes it at its end")
model.save("model.keras")
print("model.keras has", step, "of", problem.STEPS, "steps")

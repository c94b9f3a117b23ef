"""Train on several hosts with PyTorch: a process for each GPU, or for each host.

Change `problem.py`, put the folder where all hosts see it, put the first host's address
into `start_torch.sh`, and run `bash start_torch.sh 0 10.0.0.1 eth0 torch_worker.py` on
the first host, `bash start_torch.sh 1 10.0.0.2 eth0 torch_worker.py` on the second,
with their own addresses and network. Then `KERAS_BACKEND=torch python result.py`.
"""

import datetime
import os

os.environ["KERAS_BACKEND"] = "torch"
import torch
import torch.distributed as dist

GPU = torch.cuda.is_available()
DEVICE = f"cuda:{os.environ['LOCAL_RANK']}" if GPU else "cpu"
os.environ["KERAS_TORCH_DEVICE"] = DEVICE  # Keras reads it when it is imported
if GPU:
    torch.cuda.set_device(DEVICE)
limit = datetime.timedelta(minutes=10)  # longer than a save: all wait for rank 0
dist.init_process_group("nccl" if GPU else "gloo", timeout=limit)

import keras
import problem

rank, world = dist.get_rank(), dist.get_world_size()
model, optimizer, state = problem.network()
parallel = torch.nn.parallel.DistributedDataParallel(model)
weights = model.trainable_variables
seen = {id(parameter) for parameter in model.parameters()}
if unseen := [weight.path for weight in weights if id(weight.value) not in seen]:
    raise SystemExit(f"DDP does not see {unseen[0]}, so it would not be averaged.")


# What layers collect, such as moving averages; a frozen weight is none of them.
layers = model._flatten_layers()
collected = [each for layer in layers for each in layer._non_trainable_variables]


def average(variables):
    """Give all ranks the mean of their values."""
    for variable in variables:
        if variable.dtype.startswith("float"):  # dropout's state is whole numbers
            dist.all_reduce(variable.value)
            variable.value.div_(world)


def settle():
    """Give all ranks the mean of what they have collected; before a save."""
    average(collected)


def train_step(step):
    """Take a step; the mean of the ranks' losses."""
    torch.manual_seed(step * world + rank)  # dropout is the same after a restart
    arrays = problem.batch(step, rank, world)
    x, y = keras.tree.map_structure(lambda a: torch.from_numpy(a).to(DEVICE), arrays)
    parallel.zero_grad()
    each = problem.loss(y, parallel(x, training=True))
    loss = each.mean() + sum(model.losses)
    optimizer.scale_loss(loss).backward()  # and the all-reduce of the gradients
    optimizer.apply([weight.value.grad for weight in weights], weights)
    mean = loss.detach()
    dist.all_reduce(mean)
    return mean / world


if __name__ == "__main__":
    steps = range(min(problem.STEPS, 12))  # a trial
    losses = [round(float(train_step(step)), 3) for step in steps]
    print([world, losses])
    dist.destroy_process_group()

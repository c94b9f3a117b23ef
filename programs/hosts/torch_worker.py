"""The loop on PyTorch; torchrun starts it."""

from two_torch import (
    DEVICE,
    dist,
    optimizer,
    rank,
    settle,
    state,
    train_step,
    world,
)  # first: it connects

# isort: split
import loop

loop.check(rank, world, DEVICE, optimizer)


def gather(numbers):
    """The numbers of every rank."""
    found = [None] * world
    dist.all_gather_object(found, numbers)
    return found


if __name__ == "__main__":
    losses = loop.train(train_step, gather, rank, state, settle=settle)
    print(losses[-12:])  # the checkpoint has all
    dist.destroy_process_group()

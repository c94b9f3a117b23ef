"""The loop on PyTorch; torchrun starts it."""

from two_torch import DEVICE, dist, rank, state, train_step, world  # first: it connects

# isort: split
import loop

loop.check(rank, world, DEVICE)


def gather(numbers):
    """The numbers of every rank."""
    found = [None] * world
    dist.all_gather_object(found, numbers)
    return found


if __name__ == "__main__":
    print(loop.train(train_step, gather, rank, state))
    dist.destroy_process_group()

"""Work on items in threads while further items are being read, with results in their order."""

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_order(
    work: Callable[[Item], Result], items: Iterable[Item], n_threads: int
) -> Generator[Result, None, None]:
    """Yield ``work(item)`` for each item, in order; few items are held at a time.

    Results depend neither on the number of threads nor on their speed. If the items fail to come,
    the results of those that came are yielded first.
    """
    pending: deque[Future[Result]] = deque()
    trouble: BaseException | None = None
    with ThreadPoolExecutor(n_threads) as pool:
        try:
            source = iter(items)
            while trouble is None:
                try:
                    item = next(source)
                except StopIteration:
                    break
                except BaseException as error:  # Ctrl-C, too
                    trouble = error
                    break
                pending.append(pool.submit(work, item))
                del item  # so that its memory can go as soon as it has been worked on
                if len(pending) > n_threads + 1:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()
    if trouble is not None:
        raise trouble

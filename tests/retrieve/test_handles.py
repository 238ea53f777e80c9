import pytest

from ullage.errors import UnknownHandle
from ullage.retrieve import PREFIX, Place
from ullage.retrieve.retriever import Handles

pytestmark = pytest.mark.requirement("S4:more")


def places(*names: str) -> tuple[Place, ...]:
    return tuple(Place(path=name, first=1, last=2) for name in names)


def test_a_handle_stands_for_places_and_for_one_principal_alone():
    handles = Handles()
    handle = handles.keep("ann", places("a"))
    assert handles.open("ann", handle) == places("a")
    with pytest.raises(UnknownHandle, match="no passages are held under"):
        handles.open("bob", handle)


def test_the_same_places_have_the_same_handle_each_time_but_not_for_another():
    handles = Handles()
    handle = handles.keep("ann", places("a"))
    assert handles.keep("ann", places("a")) == handle
    assert len({handle, handles.keep("ann", places("b")), handles.keep("bob", places("a"))}) == 3


def test_a_handle_cannot_be_reckoned_from_what_it_stands_for():
    found = {Handles().keep("ann", places("a")) for _ in range(20)}
    assert len(found) == 20
    assert all(handle.startswith(PREFIX) and len(handle) == 20 for handle in found)
    assert "key" not in repr(Handles())


def test_the_oldest_is_let_go_and_nobody_pushes_out_another():
    handles = Handles()
    kept = handles.keep("bob", places("his"))
    mine = [handles.keep("ann", places(str(number))) for number in range(101)]
    with pytest.raises(UnknownHandle):
        handles.open("ann", mine[0])
    assert handles.open("ann", mine[1])
    assert handles.open("bob", kept)


def test_one_that_is_used_again_is_not_the_oldest():
    handles = Handles()
    first = handles.keep("ann", places("first"))
    for number in range(99):
        handles.keep("ann", places(str(number)))
    handles.keep("ann", places("first"))
    handles.keep("ann", places("one more"))
    assert handles.open("ann", first)


def test_principals_are_bounded():
    handles = Handles()
    first = handles.keep("0", places("a"))
    for number in range(1, 101):
        handles.keep(str(number), places("a"))
    with pytest.raises(UnknownHandle):
        handles.open("0", first)

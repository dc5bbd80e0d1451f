import pytest


def pytest_collection_modifyitems(items):
    """Tests of one file share fixtures that take long: one worker gets them all, unless they name another group."""
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(str(item.path.relative_to(item.config.rootpath))))

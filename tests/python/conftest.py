"""What tests of different files share."""

import pytest

from browser import Browser, find_chromium


@pytest.fixture(scope="module")
def browser():
    if not find_chromium():
        pytest.fail("please install chromium")
    browser = Browser()
    yield browser
    browser.close()

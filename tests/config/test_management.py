from vpnrouter.config.router import Management


def test_user() -> None:
    """A user may look at everything unless more or less is written."""
    users = Management.model_validate(
        {"users": {"ann": {"password": "pw"}, "bob": {"password": "pw", "msg_vpns": ["blue"]}}}
    ).users
    assert users["ann"].role == "read-only"
    assert users["ann"].msg_vpns is None
    assert users["bob"].msg_vpns == ("blue",)
    assert users["ann"].password.verify(b"pw")


def test_empty_list_is_not_everything() -> None:
    """A user of no message VPN is not a user of all of them."""
    users = Management.model_validate({"users": {"a": {"password": "p", "msg_vpns": []}}}).users
    assert users["a"].msg_vpns == ()

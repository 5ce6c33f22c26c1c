from vpnrouter.config.access import ClientUsername


def test_a_written_client_username_is_on() -> None:
    """It is enabled, has the built-in profiles, and without a password lets nobody in by one."""
    account = ClientUsername.model_validate(None)
    assert account.enabled
    assert (account.client_profile, account.acl_profile) == ("default", "default")
    assert account.password is None
    assert not account.guaranteed_endpoint_permission_override_enabled

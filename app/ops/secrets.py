"""``flask ops reencrypt``: what has to be done before an encryption key can be retired."""

import json
from dataclasses import asdict

import click
from flask.cli import with_appcontext

from app.ops.asking import actor_option, dry_run_option, json_object_option
from models.audit import record
from models.reencryption import reencrypt
from models.session import transaction
from models.settings import SettingsError


@click.command("reencrypt")
@actor_option
@dry_run_option
@json_object_option
@with_appcontext
def reencrypt_secrets(actor: str, dry_run: bool, as_json: bool) -> None:
    """Write every stored secret anew with the newest of ENCRYPTION_KEYS.

    Put the new key in front of the old ones, restart every process, run this, and then the old keys can be removed.
    It may be run at any time and any number of times.
    """
    try:
        done = reencrypt(dry_run=dry_run)
    except SettingsError as error:
        raise click.ClickException(error.message) from None
    outdated = sum(each.outdated for each in done)
    if not dry_run and outdated:
        with transaction() as session:
            record(session, actor, "secrets.reencrypt", "ENCRYPTION_KEYS", rewritten=outdated)
    if as_json:
        click.echo(json.dumps({"dryRun": dry_run, "secrets": [asdict(each) for each in done]}))
        return
    verb = "need an older key" if dry_run else "written anew"
    for each in done:
        click.echo(f"{each.secrets:<13} {each.count:>8}, of which {each.outdated:>8} {verb}")
    if outdated and dry_run:
        click.echo("Run it without --dry-run before you remove an older key.")
    else:
        click.echo("Only the first of ENCRYPTION_KEYS is needed now.")

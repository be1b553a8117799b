-- What the database itself refuses, whoever asks: a bug of ours or somebody at a psql prompt.

-- Round ids are 1, 2, 3, … and rounds are never deleted.
CREATE FUNCTION refuse_gap_in_rounds() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' OR TG_OP = 'TRUNCATE' THEN
        RAISE EXCEPTION 'rounds are never deleted' USING ERRCODE = 'restrict_violation';
    END IF;
    -- Serialises openings; two that race would otherwise both see the same last id.
    PERFORM pg_advisory_xact_lock(hashtext('rounds'));
    IF NEW.id <> (SELECT coalesce(max(id), 0) + 1 FROM rounds) THEN
        RAISE EXCEPTION 'round % would leave a gap', NEW.id USING ERRCODE = 'check_violation';
    END IF;
    IF NEW.state <> 'OPEN' THEN
        RAISE EXCEPTION 'a round begins OPEN, not %', NEW.state USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER gap_free BEFORE INSERT OR DELETE ON rounds FOR EACH ROW EXECUTE FUNCTION refuse_gap_in_rounds();
CREATE TRIGGER kept BEFORE TRUNCATE ON rounds FOR EACH STATEMENT EXECUTE FUNCTION refuse_gap_in_rounds();

-- The pairs of protocol/lifecycle.py; a test holds the two against each other.
CREATE FUNCTION refuse_illegal_transition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.id <> OLD.id THEN
        RAISE EXCEPTION 'a round keeps its id' USING ERRCODE = 'check_violation';
    END IF;
    IF NEW.state <> OLD.state AND (OLD.state::text, NEW.state::text) NOT IN (
        ('OPEN', 'SEALING'), ('SEALING', 'SEALED'), ('SEALED', 'ESCROWED'), ('ESCROWED', 'DRAWN'),
        ('DRAWN', 'SETTLED'), ('SETTLED', 'CLOSED'),
        ('OPEN', 'FAILED'), ('SEALING', 'FAILED'), ('SEALED', 'FAILED'), ('ESCROWED', 'FAILED')
    ) THEN
        RAISE EXCEPTION 'a round cannot go from % to %', OLD.state, NEW.state USING ERRCODE = 'check_violation';
    END IF;
    -- What a round promised when it opened, and every hash once it is published, stays as it is.
    IF (NEW.rules, NEW.rules_hash, NEW.mode, NEW.seed_commit) IS DISTINCT FROM (OLD.rules, OLD.rules_hash, OLD.mode, OLD.seed_commit)
        OR (OLD.full_manifest_hash IS NOT NULL AND NEW.full_manifest_hash IS DISTINCT FROM OLD.full_manifest_hash)
        OR (OLD.chained_anchor_hash IS NOT NULL AND NEW.chained_anchor_hash IS DISTINCT FROM OLD.chained_anchor_hash)
        OR (OLD.effective_manifest_hash IS NOT NULL AND NEW.effective_manifest_hash IS DISTINCT FROM OLD.effective_manifest_hash)
        OR (OLD.previous_round_hash IS NOT NULL AND NEW.previous_round_hash IS DISTINCT FROM OLD.previous_round_hash)
        OR (OLD.settlement_hash IS NOT NULL AND NEW.settlement_hash IS DISTINCT FROM OLD.settlement_hash)
        OR (OLD.sealed_at IS NOT NULL AND NEW.sealed_at IS DISTINCT FROM OLD.sealed_at)
    THEN
        RAISE EXCEPTION 'a published fact of round % cannot change', OLD.id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER legal BEFORE UPDATE ON rounds FOR EACH ROW EXECUTE FUNCTION refuse_illegal_transition();

-- Tickets: written to their round's partition, while it is open. FOR SHARE makes the seal wait for the writers
-- that are at work, and the writers that come later see the seal.
CREATE FUNCTION refuse_late_tickets() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    current record;
BEGIN
    IF TG_OP <> 'INSERT' THEN
        RAISE EXCEPTION 'tickets are never altered or deleted' USING ERRCODE = 'restrict_violation';
    END IF;
    SELECT state, seal_at INTO current FROM rounds WHERE id = TG_ARGV[0]::bigint FOR SHARE;
    IF NOT FOUND OR current.state <> 'OPEN' OR current.seal_at <= clock_timestamp() THEN
        RAISE EXCEPTION 'round % takes no more tickets', TG_ARGV[0] USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE FUNCTION refuse_tickets_past_the_partition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'tickets are written to the partition of their round' USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER guard BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON tickets
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_tickets_past_the_partition();

-- A manifest comes while the round is open and is not replaced; a recount is written once.
CREATE FUNCTION refuse_manifest_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        RAISE EXCEPTION 'manifests are never deleted' USING ERRCODE = 'restrict_violation';
    END IF;
    IF TG_OP = 'INSERT' THEN
        IF (SELECT state FROM rounds WHERE id = NEW.round_id FOR SHARE) <> 'OPEN' THEN
            RAISE EXCEPTION 'round % takes no more manifests', NEW.round_id USING ERRCODE = 'restrict_violation';
        END IF;
    ELSIF (NEW.round_id, NEW.operator_id, NEW.manifest_json, NEW.manifest_hash, NEW.ticket_count, NEW.tickets_root, NEW.nonce_commit)
            IS DISTINCT FROM
          (OLD.round_id, OLD.operator_id, OLD.manifest_json, OLD.manifest_hash, OLD.ticket_count, OLD.tickets_root, OLD.nonce_commit)
        OR OLD.agreed IS NOT NULL
    THEN
        RAISE EXCEPTION 'a manifest is never altered' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER kept BEFORE INSERT OR UPDATE OR DELETE ON manifests FOR EACH ROW EXECUTE FUNCTION refuse_manifest_change();

-- One draw a round, made while it is ESCROWED; its seed and numbers never change.
CREATE FUNCTION refuse_second_draw() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        RAISE EXCEPTION 'draws are never deleted' USING ERRCODE = 'restrict_violation';
    END IF;
    IF TG_OP = 'INSERT' THEN
        IF (SELECT state FROM rounds WHERE id = NEW.round_id) <> 'ESCROWED' THEN
            RAISE EXCEPTION 'round % is not ready to be drawn', NEW.round_id USING ERRCODE = 'restrict_violation';
        END IF;
    ELSIF (NEW.round_id, NEW.draw_seed, NEW.jackpot_number, NEW.bonus1, NEW.bonus2, NEW.bonus3, NEW.bonus4, NEW.bonus5)
            IS DISTINCT FROM
          (OLD.round_id, OLD.draw_seed, OLD.jackpot_number, OLD.bonus1, OLD.bonus2, OLD.bonus3, OLD.bonus4, OLD.bonus5)
        OR OLD.drawn_at IS NOT NULL
    THEN
        RAISE EXCEPTION 'round % was drawn already', OLD.round_id USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER once BEFORE INSERT OR UPDATE OR DELETE ON draws FOR EACH ROW EXECUTE FUNCTION refuse_second_draw();

-- The ledger: entries are added and never altered, move their account's balance, and sum to zero by commit.
CREATE FUNCTION move_balance() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO ledger_accounts AS a (id, balance) VALUES (NEW.account_id, 0) ON CONFLICT (id) DO NOTHING;
    UPDATE ledger_accounts SET balance = balance + NEW.amount WHERE id = NEW.account_id;
    RETURN NEW;
END $$;
CREATE TRIGGER moves AFTER INSERT ON ledger_entries FOR EACH ROW EXECUTE FUNCTION move_balance();

CREATE FUNCTION refuse_unbalanced_posting() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    posting bigint := CASE TG_TABLE_NAME WHEN 'ledger_postings' THEN (to_jsonb(NEW) ->> 'id')::bigint
                                         ELSE (to_jsonb(NEW) ->> 'posting_id')::bigint END;
    total numeric;
BEGIN
    SELECT sum(amount) INTO total FROM ledger_entries WHERE posting_id = posting;
    IF total IS DISTINCT FROM 0 THEN
        RAISE EXCEPTION 'posting % sums to %, not to zero', posting, coalesce(total::text, 'nothing')
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER balanced AFTER INSERT ON ledger_entries
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse_unbalanced_posting();
CREATE CONSTRAINT TRIGGER balanced AFTER INSERT ON ledger_postings
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse_unbalanced_posting();

-- A balance is the sum of its entries: only the trigger above, one level down, may move it.
CREATE FUNCTION refuse_direct_balance() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF pg_trigger_depth() < 2 THEN
        RAISE EXCEPTION 'balances move by postings only' USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER derived BEFORE INSERT OR UPDATE OR DELETE ON ledger_accounts
    FOR EACH ROW EXECUTE FUNCTION refuse_direct_balance();

CREATE FUNCTION refuse_rewriting() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is only ever added to', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER kept BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger_entries FOR EACH STATEMENT EXECUTE FUNCTION refuse_rewriting();
CREATE TRIGGER kept BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger_postings FOR EACH STATEMENT EXECUTE FUNCTION refuse_rewriting();
CREATE TRIGGER kept BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_log FOR EACH STATEMENT EXECUTE FUNCTION refuse_rewriting();
CREATE TRIGGER kept BEFORE UPDATE OR DELETE OR TRUNCATE ON round_events FOR EACH STATEMENT EXECUTE FUNCTION refuse_rewriting();
CREATE TRIGGER kept BEFORE UPDATE OR DELETE OR TRUNCATE ON round_transitions FOR EACH STATEMENT EXECUTE FUNCTION refuse_rewriting();

INSERT INTO jackpot (id) VALUES (1);

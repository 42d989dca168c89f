//! Refuses a schema that contains code of other users.
//!
//! Triggers, rules, policies, defaults, checks, expressions of indexes and types of columns run
//! with the rights of the user of a table, even a superuser's, and functions in the schema can
//! shadow those of the server. A user who creates the schema first could leave such code there for
//! all others. Trusted are only owners who could run code as this user anyway: the user, the
//! database's owner and superusers. Even their tables may contain only what pinwise made, because
//! code could have been planted before the owner was changed.

use super::failure::to_one_line;
use super::link::{Link, Trouble, value};

/// Finds something forbidden: its name, and the remedy. The search path must be `pg_catalog`: then
/// names mean the server's own objects, and expressions show other functions and operators with
/// their schema.
const FIND_FOREIGN_CODE: &str = r"
    WITH trusted AS (
        SELECT oid FROM pg_roles WHERE rolsuper OR rolname = current_user
        UNION SELECT datdba FROM pg_database WHERE datname = current_database()
    ), space AS (
        SELECT * FROM pg_namespace WHERE nspname = 'pinwise'
    ), relation AS (
        SELECT c.*, 'pinwise.' || quote_ident(relname) AS name
        FROM pg_class c JOIN space s ON relnamespace = s.oid
    ), allowed AS (
        SELECT grantee, privilege_type AS privilege, 'schema pinwise' AS name
        FROM space, aclexplode(nspacl)
        UNION ALL SELECT grantee, privilege_type, 'table ' || name
        FROM relation, aclexplode(relacl) WHERE relkind <> 'S'
    )
    SELECT 'the schema pinwise belongs to ' || pg_get_userbyid(nspowner)
        || ', who is neither you nor the owner of the database nor a superuser',
        'have the owner of the database make it'
    FROM space WHERE nspowner NOT IN (SELECT oid FROM trusted)
    UNION ALL
    SELECT name || ' belongs to ' || pg_get_userbyid(relowner)
        || ', who is neither you nor the owner of the database nor a superuser',
        'have the owner of the database make it'
    FROM relation WHERE relkind <> 'i' AND relowner NOT IN (SELECT oid FROM trusted)
    UNION ALL
    SELECT role || ' may add code to ' || name,
        'REVOKE ' || privilege || ' ON ' || name || ' FROM ' || role
    FROM (SELECT *, CASE grantee WHEN 0 THEN 'PUBLIC'
            ELSE quote_ident(pg_get_userbyid(grantee)) END AS role FROM allowed) AS a
    WHERE privilege IN ('CREATE', 'TRIGGER') AND grantee NOT IN (SELECT oid FROM trusted)
    UNION ALL
    SELECT what || ', which pinwise did not make', 'have its owner look at it and remove it'
    FROM (
        SELECT 'trigger ' || quote_ident(tgname) || ' on ' || name
        FROM relation r JOIN pg_trigger ON tgrelid = r.oid WHERE NOT tgisinternal
        UNION ALL
        SELECT 'rule ' || quote_ident(rulename) || ' on ' || name
        FROM relation r JOIN pg_rewrite ON ev_class = r.oid
        UNION ALL
        SELECT 'policy ' || quote_ident(polname) || ' on ' || name
        FROM relation r JOIN pg_policy ON polrelid = r.oid
        WHERE (polname, polcmd) NOT IN (('all_read', 'r'), ('own_added', 'a'),
                ('own_changed', 'w'), ('own_removed', 'd'))
            OR coalesce(pg_get_expr(polqual, polrelid), 'true')
                NOT IN ('true', '(owner = CURRENT_USER)')
            OR coalesce(pg_get_expr(polwithcheck, polrelid), 'true')
                NOT IN ('true', '(owner = CURRENT_USER)')
        UNION ALL
        SELECT 'default of column ' || quote_ident(attname) || ' of ' || name
        FROM relation r JOIN pg_attrdef ON adrelid = r.oid
            JOIN pg_attribute ON attrelid = r.oid AND attnum = adnum
        WHERE pg_get_expr(adbin, adrelid) <> 'CURRENT_USER' OR attgenerated <> ''
        UNION ALL
        SELECT 'type of column ' || quote_ident(attname) || ' of ' || name
        FROM relation r JOIN pg_attribute ON attrelid = r.oid
            JOIN pg_type t ON t.oid = atttypid
        WHERE typnamespace <> 'pg_catalog'::regnamespace
        UNION ALL
        SELECT 'check ' || quote_ident(conname) || ' on ' || name
        FROM relation r JOIN pg_constraint ON conrelid = r.oid WHERE contype IN ('c', 'x')
        UNION ALL
        SELECT 'index ' || name
        FROM relation r JOIN pg_index ON indexrelid = r.oid
        WHERE indpred IS NOT NULL OR pg_get_expr(indexprs, indrelid) <> 'md5(subject)'
        UNION ALL
        SELECT 'function pinwise.' || quote_ident(proname)
        FROM pg_proc p JOIN space s ON pronamespace = s.oid
        UNION ALL
        SELECT 'operator pinwise.' || oprname
        FROM pg_operator p JOIN space s ON oprnamespace = s.oid
    ) AS planted (what)
    LIMIT 1";

/// Refuses a schema in which another user could have put code.
pub(super) fn refuse_foreign_code(link: &Link) -> Result<(), Trouble> {
    let rows = link.query(FIND_FOREIGN_CODE, &[])?;
    let Some(row) = rows.first() else {
        return Ok(());
    };
    let (what, hint): (String, String) = (value(row, 0)?, value(row, 1)?);
    Err(Trouble::Insecure(to_one_line(&format!(
        "{what}: code of others could run as you ({hint}; docs/records.md, PostgreSQL)"
    ))))
}

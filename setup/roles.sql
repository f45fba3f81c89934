-- roles.sql - who may do what with a store on a server. Run it once, as the user who made the tables and who may create
-- roles (createuser --createrole):
--
--     psql -d postgres://db.example/cutegen -f setup/roles.sql
--     psql -d postgres://db.example/cutegen -c 'GRANT cutegen_worker TO alice'
--
-- cutegen_reader   runs, reports, top: reads everything, changes nothing
-- cutegen_worker   also does jobs and drives runs; submits no suites, removes no texts, changes no tables
-- cutegen_owner    also submits suites and prunes; tables are changed by whoever made them
--
-- Again after `cutegen store upgrade`: new tables need it.
\set ON_ERROR_STOP on
SET client_min_messages = warning;
DO $$
DECLARE name TEXT;
BEGIN
    FOREACH name IN ARRAY ARRAY['cutegen_reader', 'cutegen_worker', 'cutegen_owner'] LOOP
        IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = name) THEN
            EXECUTE format('CREATE ROLE %I NOLOGIN', name);
        END IF;
    END LOOP;
END $$;
GRANT cutegen_reader TO cutegen_worker;
GRANT cutegen_worker TO cutegen_owner;

REVOKE ALL ON ALL TABLES IN SCHEMA public FROM PUBLIC;
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO cutegen_reader;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO cutegen_reader;

-- What a run writes. An attempt that was cut short is begun again: its rows are replaced.
GRANT INSERT ON blobs, tasks, runs, candidates, attempts, verdicts, findings, builds, tests, measurements, baselines,
    profiles, acceptances, shapes, calls, messages, events, exports, budgets, workers, kernels TO cutegen_worker;
GRANT UPDATE ON runs, attempts, profiles, acceptances, calls, budgets, workers TO cutegen_worker;
GRANT DELETE ON candidates, attempts, verdicts, findings, builds, tests, measurements, baselines, profiles, acceptances,
    shapes TO cutegen_worker;
-- Of a job only who has it and what became of it: not what is to be done. It asks for nothing but code to be compiled.
GRANT UPDATE (state, tries, problem, worker, after_ms, claimed_ms, lease_ms, ended_ms, needs_kind, needs_gpu, run, result)
    ON jobs TO cutegen_worker;
GRANT INSERT ON jobs TO cutegen_worker;
ALTER TABLE jobs ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS reads ON jobs;
DROP POLICY IF EXISTS works ON jobs;
DROP POLICY IF EXISTS asks ON jobs;
DROP POLICY IF EXISTS owns ON jobs;
CREATE POLICY reads ON jobs FOR SELECT TO cutegen_reader USING (true);
CREATE POLICY works ON jobs FOR UPDATE TO cutegen_worker USING (true);
CREATE POLICY asks ON jobs FOR INSERT TO cutegen_worker WITH CHECK (kind = 'compile');
CREATE POLICY owns ON jobs TO cutegen_owner USING (true) WITH CHECK (true);
GRANT UPDATE (ended, problem, wall_ms, retries) ON suite_tasks TO cutegen_worker;

GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO cutegen_owner;
REVOKE INSERT, UPDATE, DELETE ON cutegen_store FROM cutegen_owner;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO cutegen_worker;

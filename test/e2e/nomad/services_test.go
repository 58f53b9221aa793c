package nomad_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	nomadapi "github.com/hashicorp/nomad/api"

	"pitchpipe/test/nomadagent"
)

// The exporter is one of the files too: as a system job it answers on each node.
func TestTheExporterRunsAsASystemJob(t *testing.T) {
	s := bareStage(t, nomadagent.Options{})
	at := s.path("as-job")
	s.exporter(at)
	if _, err := os.Stat(filepath.Join(at, "exporter.sock")); err != nil {
		t.Error(err)
	}
}

// Everything that a cluster needs as the page tells its administrator to start it: the exporter
// as a system job and the controller as a service job, with ACLs on, by the identity of
// its own task, the policy that ships, and no token anywhere. A user's job is tuned.
func TestAClusterTunesWithTheJobFilesThatShipAlone(t *testing.T) {
	if !*all {
		t.Skip("it takes minutes; make e2e-nomad runs it")
	}
	s := bareStage(t, nomadagent.Options{Kind: nomadagent.Real, ACL: true})
	at := s.path("as-job")
	s.exporter(at)
	s.calm(filepath.Join(at, "exporter.sock"), s.path("exporter.sock"))
	rules, err := os.ReadFile("../../../scripts/nomad/policy.hcl")
	if err != nil {
		t.Fatal(err)
	}
	bound := &nomadapi.ACLPolicy{Name: "pitchpipe", Rules: string(rules), JobACL: &nomadapi.JobACL{Namespace: "default", JobID: "pitchpipe-controller"}}
	if _, err := s.nomad.ACLPolicies().Upsert(bound, nil); err != nil {
		t.Fatal(err)
	}
	s.site()
	s.service("controller", map[string]string{
		"program": s.unmarked("pitchpipe"), "state": s.path("state"), "directory": s.dir, "site": s.path("site.yaml"),
	})
	s.listens()
	jacobi := shippedFiles()[0]
	jacobi.tuned = 20
	first := s.result(s.send(jacobi, jacobi.tuned), jacobi.tuned, time.Time{})
	again := s.result(s.send(jacobi, againEpochs), againEpochs, first.Submitted)
	for _, run := range []struct {
		what     string
		restarts int
		lost     int
		state    string
	}{{"met for the first time", first.Restarts + first.Probes - first.Attempts + 1, first.Lost + first.Twice, first.State}, {"returned", again.Restarts + again.Probes - again.Attempts + 1, again.Lost + again.Twice, again.State}} {
		if run.state != "succeeded" || run.lost != 0 || run.restarts != 0 {
			t.Errorf("%s: %s, %d epochs lost or done twice, attempts and their reasons differ by %d", run.what, run.state, run.lost, run.restarts)
		}
	}
	if first.Restarts+first.Probes == 0 && first.Reason == "" {
		t.Errorf("it was neither tuned nor told why not: %+v", first.Job)
	}
	fmt.Fprintf(&report, "On %s with ACLs: exporter and controller as the jobs that ship. jacobi: %d attempts, %s (%s); it returned in %d, with %s of %s from its start (%s).\n",
		s.agent.Name(), first.Attempts, first.Current, first.Reason, again.Attempts, again.Current, again.Own, again.Reason)
}

// exporter runs the exporter's job file, its socket in the folder.
func (s *stage) exporter(at string) {
	s.t.Helper()
	if os.Geteuid() != 0 {
		s.t.Skip("it is root's to run")
	}
	if err := os.Mkdir(at, 0o700); err != nil {
		s.t.Fatal(err)
	}
	s.service("exporter", map[string]string{"program": s.unmarked("pitchpipe-exporter"), "directory": at, "state": filepath.Join(at, "state")})
	s.await("its socket", func() error {
		_, err := os.Stat(filepath.Join(at, "exporter.sock"))
		return err
	})
}

// unmarked is a program that runs without the variable by which the agent of a test
// marks the processes of its jobs, and which is not one of ours.
func (s *stage) unmarked(program string) string {
	s.t.Helper()
	path := s.path(program + "-as-job")
	script := "#!/bin/sh\nunset PITCHPIPE_NOMADAGENT\nexec " + s.path(program) + " \"$@\"\n"
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil { //nolint:gosec // a program
		s.t.Fatal(err)
	}
	return path
}

// service registers a job file that ships as its administrator does, and takes the job
// away at the end.
func (s *stage) service(name string, vars map[string]string) {
	s.t.Helper()
	src, err := os.ReadFile(s.path("jobspecs", "nomad", name+".nomad.hcl"))
	if err != nil {
		s.t.Fatal(err)
	}
	var given strings.Builder
	for k, v := range vars {
		fmt.Fprintf(&given, "%s = %q\n", k, v)
	}
	job, err := s.nomad.Jobs().ParseHCLOpts(&nomadapi.JobsParseRequest{JobHCL: string(src), Variables: given.String(), Canonicalize: true})
	if err != nil {
		s.t.Fatal(err)
	}
	if _, _, err := s.nomad.Jobs().Register(job, nil); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if _, _, err := s.nomad.Jobs().Deregister(*job.ID, true, nil); err != nil {
			s.t.Error(err)
		}
	})
	s.await(name+" to run", func() error {
		states := []string{}
		for _, a := range s.allocations(*job.ID) {
			if a.ClientStatus == "running" {
				return nil
			}
			states = append(states, a.ClientStatus+" "+a.ClientDescription)
		}
		return errors.New(strings.Join(states, ", "))
	})
}

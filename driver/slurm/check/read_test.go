package check_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/driver/slurm/check"
)

func TestWhatSlurmPrintsOfItsAccounts(t *testing.T) {
	t.Parallel()
	users, err := check.Users([]byte("ada|None\npitchpipe-broker|Operator\n\n"))
	if diff := cmp.Diff([]check.User{{Name: "ada", Level: "None"}, {Name: "pitchpipe-broker", Level: "Operator"}}, users); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	assocs, err := check.Associations([]byte("thalia|root|\nthalia|physics|ada\n"))
	if diff := cmp.Diff([]check.Association{{Cluster: "thalia", Account: "physics", User: "ada"}}, assocs); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	if _, err := check.Users([]byte("ada|None|more\n")); !errors.Is(err, check.ErrFormat) {
		t.Errorf("three fields: %v", err)
	}
}

func TestANodeOfTwoPartitionsIsOne(t *testing.T) {
	t.Parallel()
	got, err := check.Nodes([]byte("n1|idle*|head|192.0.2.1|22.05.8\nn1|idle*|head|192.0.2.1|22.05.8\nn2|down|n2|n2|22.05.8\n"))
	want := []check.Node{
		{Name: "n1", State: "idle*", Host: "head", Address: "192.0.2.1", Version: "22.05.8"}, {Name: "n2", State: "down", Host: "n2", Address: "n2", Version: "22.05.8"},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
}

func TestPartitions(t *testing.T) {
	t.Parallel()
	got, err := check.Partitions([]byte("PartitionName=main AllowGroups=ALL Hidden=NO OverSubscribe=NO State=UP\nPartitionName=whole Hidden=YES OverSubscribe=EXCLUSIVE State=DOWN\n"))
	want := []check.Partition{{Name: "main", Up: true}, {Name: "whole", Hidden: true, Exclusive: true}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	if got, err := check.Partitions([]byte("No partitions in the system\n")); len(got) > 0 || err != nil {
		t.Errorf("none: %v, %v", got, err)
	}
	if _, err := check.Partitions([]byte("Name=main\n")); !errors.Is(err, check.ErrFormat) {
		t.Errorf("no name: %v", err)
	}
}

func TestTheClockOfSlurmctld(t *testing.T) {
	t.Parallel()
	got := check.Clock(recorded(t, "site.config.txt"))
	if got.IsZero() || got.Year() < 2026 || got.Location() != time.UTC {
		t.Errorf("clock %v", got)
	}
	for _, text := range []string{"", "Configuration data as of soon\n", "data as of 2026-01-02T03:04:05"} {
		if got := check.Clock([]byte(text)); !got.IsZero() {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestTheConfigurationOfTheTaskPrologIsReadAsItReadsIt(t *testing.T) {
	t.Parallel()
	shippedConf := check.ReadPrologConf(shippedFile(t, "task_prolog.conf"))
	if shippedConf.SiteDir != "/srv/pitchpipe/settings" || shippedConf.SiteUser != "pitchpipe" || shippedConf.OwnerDir != "" {
		t.Errorf("the shipped file: %+v", shippedConf)
	}
	if got := check.ConfOf(shippedFile(t, "task_prolog")); got != check.PrologConfPlace {
		t.Errorf("the shipped script reads %q", got)
	}
	got := check.ReadPrologConf("#site_dir=/no\n site_dir=/no\nsite_dir=/first\nsite_dir=/a=b \nsite_user=x")
	if got.SiteDir != "/a=b " || got.SiteUser != "x" {
		t.Errorf("%+v", got)
	}
	for _, c := range []struct {
		conf check.PrologConf
		mode check.Mode
		want string
	}{
		{check.PrologConf{SiteDir: "/s", OwnerDir: "o"}, check.Site, "/s"},
		{check.PrologConf{SiteDir: "/s", OwnerDir: "o/p"}, check.Owner, "/home/ada/o/p"},
		{check.PrologConf{OwnerDir: "/abs"}, check.Owner, "/abs"},
		{check.PrologConf{SiteDir: "/s"}, check.Owner, ""},
	} {
		if got := c.conf.SettingsDir(c.mode, "/home/ada"); got != c.want {
			t.Errorf("%+v in mode %s: %q", c.conf, c.mode, got)
		}
	}
}

func TestTheShippedJobSubmitCallsThePlugin(t *testing.T) {
	t.Parallel()
	got := check.ReadSubmit(shippedFile(t, "job_submit.lua"))
	if diff := cmp.Diff(check.Submit{Loads: true, Calls: true, Fault: "reject", Folder: check.PluginFolder}, got); diff != "" {
		t.Error(diff)
	}
	if got := check.ReadSubmit("pitchpipe_on_fault='warn'\npitchpipe_folder = 5\n"); got.Fault != "warn" || got.Folder != "" || got.Calls {
		t.Errorf("%+v", got)
	}
}

func FuzzTables(f *testing.F) {
	f.Add([]byte("ada|None\n"))
	f.Add([]byte("thalia|physics|ada\n"))
	f.Add([]byte("n1|idle*|head|192.0.2.1|22.05.8\n"))
	f.Fuzz(func(t *testing.T, output []byte) {
		lines := strings.Count(string(output), "\n") + 1
		users, err := check.Users(output)
		assocs, err2 := check.Associations(output)
		nodes, err3 := check.Nodes(output)
		for _, err := range []error{err, err2, err3} {
			if err != nil && !errors.Is(err, check.ErrFormat) {
				t.Error(err)
			}
		}
		if len(users) > lines || len(assocs) > lines || len(nodes) > lines {
			t.Error("more rows than lines")
		}
	})
}

func FuzzPartitions(f *testing.F) {
	f.Add([]byte("PartitionName=main Hidden=NO OverSubscribe=EXCLUSIVE State=UP\n"))
	f.Fuzz(func(t *testing.T, output []byte) {
		got, err := check.Partitions(output)
		if err != nil && !errors.Is(err, check.ErrFormat) {
			t.Error(err)
		}
		for _, p := range got {
			if p.Name == "" || strings.ContainsAny(p.Name, " \n") {
				t.Errorf("partition %q", p.Name)
			}
		}
		_ = check.Clock(output) // does not panic
	})
}

func FuzzScripts(f *testing.F) {
	f.Add(shippedFile(f, "job_submit.lua"))
	f.Add(shippedFile(f, "task_prolog"))
	f.Add(shippedFile(f, "task_prolog.conf"))
	f.Fuzz(func(t *testing.T, text string) {
		s := check.ReadSubmit(text)
		if (s.Loads || s.Calls) && !strings.Contains(text, "pitchpipe") {
			t.Errorf("%+v of %q", s, text)
		}
		c := check.ReadPrologConf(text)
		for _, v := range []string{s.Fault, s.Folder, c.SiteDir, c.SiteUser, c.OwnerDir, c.Exporter, c.Listener, check.ConfOf(text)} {
			if strings.Contains(v, "\n") || !strings.Contains(text, v) {
				t.Errorf("%q is not in the text", v)
			}
		}
	})
}

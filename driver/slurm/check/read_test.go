package check

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheConfigurationOfTheTaskPrologIsReadAsItReadsIt(t *testing.T) {
	t.Parallel()
	shippedConf := ReadPrologConf(shippedFile(t, "task_prolog.conf"))
	if shippedConf.SiteDir != "/srv/pitchpipe/settings" || shippedConf.SiteUser != "pitchpipe" || shippedConf.OwnerDir != "" {
		t.Errorf("the shipped file: %+v", shippedConf)
	}
	if got := confOf(shippedFile(t, "task_prolog")); got != PrologConfPlace {
		t.Errorf("the shipped script reads %q", got)
	}
	got := ReadPrologConf("#site_dir=/no\n site_dir=/no\nsite_dir=/first\nsite_dir=/a=b \nsite_user=x")
	if got.SiteDir != "/a=b " || got.SiteUser != "x" {
		t.Errorf("%+v", got)
	}
	for _, c := range []struct {
		conf PrologConf
		mode Mode
		want string
	}{
		{PrologConf{SiteDir: "/s", OwnerDir: "o"}, Site, "/s"},
		{PrologConf{SiteDir: "/s", OwnerDir: "o/p"}, Owner, "/home/ada/o/p"},
		{PrologConf{OwnerDir: "/abs"}, Owner, "/abs"},
		{PrologConf{SiteDir: "/s"}, Owner, ""},
	} {
		if got := c.conf.SettingsDir(c.mode, "/home/ada"); got != c.want {
			t.Errorf("%+v in mode %s: %q", c.conf, c.mode, got)
		}
	}
}

func TestTheShippedJobSubmitCallsThePlugin(t *testing.T) {
	t.Parallel()
	got := readSubmit(shippedFile(t, "job_submit.lua"))
	if diff := cmp.Diff(submitParts{Loads: true, Calls: true, Fault: "reject", Folder: PluginFolder}, got); diff != "" {
		t.Error(diff)
	}
	if got := readSubmit("pitchpipe_on_fault='warn'\npitchpipe_folder = 5\n"); got.Fault != "warn" || got.Folder != "" || got.Calls {
		t.Errorf("%+v", got)
	}
}

func FuzzScripts(f *testing.F) {
	f.Add(shippedFile(f, "job_submit.lua"))
	f.Add(shippedFile(f, "task_prolog"))
	f.Add(shippedFile(f, "task_prolog.conf"))
	f.Fuzz(func(t *testing.T, text string) {
		s := readSubmit(text)
		if (s.Loads || s.Calls) && !strings.Contains(text, "pitchpipe") {
			t.Errorf("%+v of %q", s, text)
		}
		c := ReadPrologConf(text)
		for _, v := range []string{s.Fault, s.Folder, c.SiteDir, c.SiteUser, c.OwnerDir, c.Exporter, c.Listener, confOf(text)} {
			if strings.Contains(v, "\n") || !strings.Contains(text, v) {
				t.Errorf("%q is not in the text", v)
			}
		}
	})
}

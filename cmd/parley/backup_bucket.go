package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"parley/cmd/internal/offsite"
	"parley/cmd/internal/orgfiles"
	"parley/snapshot"
)

// placeFlags adds the flags for a place of backups in a bucket.
func placeFlags(c *cobra.Command, name string) func() offsite.Place {
	var p offsite.Place
	c.Flags().StringVar(&p.URL, name, "", "bucket of the backups: "+
		"s3://BUCKET/FOLDER?endpoint=https://HOST&region=NAME&path-style=true")
	c.Flags().StringVar(&p.Key, "key", "", "file with the key of the backups, as age-keygen writes it")
	c.Flags().StringVar(&p.Credentials, "credentials", "",
		"file with the keys for the bucket, in the format of ~/.aws/credentials (default: from the environment)")
	return func() offsite.Place { return p }
}

// bucketBackup is a backup in a bucket.
type bucketBackup struct {
	place      offsite.Place
	name       string // "": the newest one
	incomplete bool
}

// bucketBackupFlags adds the flags that choose a backup in a bucket.
func bucketBackupFlags(c *cobra.Command) func() bucketBackup {
	place := placeFlags(c, "from")
	name := c.Flags().String("backup", "", "with --from: name of the backup, as parley backup --list shows it "+
		"(default: the newest one)")
	incomplete := c.Flags().Bool("incomplete", false,
		"with --from: leave out uploaded files that are missing or damaged in the bucket, and name them")
	return func() bucketBackup { return bucketBackup{place(), *name, *incomplete} }
}

func newBackupKey(file string, out io.Writer) error {
	public, err := offsite.CreateKey(file)
	if err == nil {
		_, err = fmt.Fprintf(out, "%s: the key of backups, public half %s\nKeep a copy of the file away from this "+
			"machine: without it no backup can be restored.\n", file, public)
	}
	return err
}

// backUp makes backups in a bucket until it is stopped, or one.
func backUp(o offsite.Options, keep string, out, warnings io.Writer) (err error) {
	if o.Keep, err = offsite.ParseKeep(keep); err != nil {
		return err
	}
	if o.Every != 0 && (o.Every < offsite.MinInterval || o.Every > offsite.MaxInterval) {
		return fmt.Errorf("every must be between %v and %v, not %v", offsite.MinInterval, offsite.MaxInterval, o.Every)
	}
	o.Program, o.Log = buildVersion(), slog.New(slog.NewTextHandler(warnings, nil))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	report := func(r offsite.Result, err error) {
		if err != nil {
			fmt.Fprintf(warnings, "the backup failed: %v\n", err)
			return
		}
		warn(warnings, r.Warning)
		fmt.Fprintf(out, "%s: %d files, %d bytes; %d sent, %d bytes; %d older backups removed\n", r.Name, r.Files,
			r.Bytes, r.New, r.Sent, r.Removed)
	}
	if o.Every != 0 {
		return offsite.Regularly(ctx, o, report)
	}
	r, err := offsite.Once(ctx, o)
	if err == nil {
		report(r, nil)
	}
	return err
}

func listBackups(p offsite.Place, out io.Writer) error {
	return withFolder(p, "", func(f *offsite.Folder) error {
		all, err := f.Backups()
		for _, b := range all {
			l, err := f.Read(b)
			if err != nil {
				fmt.Fprintln(out, err)
				continue
			}
			bytes := int64(0)
			for _, file := range l.Files {
				bytes += file.Size
			}
			begun := b.Begun.UTC().Format(time.RFC3339)
			fmt.Fprintf(out, "%s  %s  %d files, %d bytes\n", b.Name, begun, len(l.Files), bytes)
		}
		return err
	})
}

// withFolder calls a function with the backups of a place. dir is a directory for the objects that are being sent; "":
// none are.
func withFolder(p offsite.Place, dir string, fn func(*offsite.Folder) error) error {
	f, err := p.Open(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	return errors.Join(fn(f), f.Close())
}

// restore makes a data directory.
func (b bucketBackup) restore(dir string, end restoreEnd, out io.Writer) error {
	return withFolder(b.place, "", func(f *offsite.Folder) error {
		if end.at != 0 && b.name == "" && len(end.whole) == 0 {
			return b.restoreAt(f, dir, end, out)
		}
		chosen, err := f.Find(b.name)
		if err != nil {
			return err
		}
		return b.read(f, chosen, out, func(r io.Reader) error { return restoreStream(r, dir, end) })
	})
}

// restoreAt restores a time from the backups before and after it.
func (b bucketBackup) restoreAt(f *offsite.Folder, dir string, end restoreEnd, out io.Writer) error {
	before, after, err := f.Around(time.Unix(end.at, 0))
	if err != nil {
		return err
	}
	if before == nil {
		return b.read(f, after, out, func(r io.Reader) error { return restoreStream(r, dir, end) })
	}
	return b.read(f, after, out, func(later io.Reader) error {
		return b.read(f, *before, out, func(earlier io.Reader) error {
			return snapshot.RestoreBetween(earlier, later, dir, end.at)
		})
	})
}

// read passes the content of a backup to a function, and prints the names of missing parts.
func (b bucketBackup) read(f *offsite.Folder, chosen offsite.Backup, out io.Writer, fn func(io.Reader) error) error {
	r, err := f.Stream(chosen, b.incomplete)
	if err != nil {
		return err
	}
	defer r.Close()
	if err := fn(r); err != nil {
		return err
	}
	fmt.Fprintf(out, "backup %s, begun at %s\n", chosen.Name, chosen.Begun.UTC().Format(time.RFC3339))
	for _, name := range r.Skipped {
		fmt.Fprintf(out, "left out because it is missing or damaged in the bucket: %s\n", name)
	}
	if r.List.Warning != "" {
		fmt.Fprintf(out, "when it was made: %s\n", r.List.Warning)
	}
	if r.List.Place != "" {
		place := orgfiles.Place{Files: r.List.Place}
		fmt.Fprintf(out, "The server's files were in %s; they are now in the data directory. parley files move copies "+
			"them to a bucket.\n", place)
	}
	return nil
}

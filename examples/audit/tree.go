package main

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
)

// Folders lists, sorted, every folder below a root that directly holds a regular file. Links are not followed.
func Folders(root fs.FS) ([]string, error) {
	holding := map[string]bool{}
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.Type().IsRegular() {
			holding[path.Dir(name)] = true
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing folders: %w", err)
	}
	folders := make([]string, 0, len(holding))
	for folder := range holding {
		folders = append(folders, folder)
	}
	slices.Sort(folders)
	return folders, nil
}

// Folder audits the regular files that a folder holds directly, and returns their records sorted by path.
func (s *Scanner) Folder(root *os.Root, folder string) ([]Record, error) {
	if !fs.ValidPath(folder) {
		return nil, fmt.Errorf("auditing folder %q: not a path below the root; write it as `audit list` does", folder)
	}
	entries, err := fs.ReadDir(root.FS(), folder)
	if err != nil {
		return nil, fmt.Errorf("auditing folder %q: %w", folder, err)
	}
	var records []Record
	for _, entry := range entries {
		if !entry.Type().IsRegular() {
			continue
		}
		record, err := s.file(root, path.Join(folder, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("auditing folder %q: %w", folder, err)
		}
		records = append(records, record)
	}
	return records, nil
}

func (s *Scanner) file(root *os.Root, name string) (Record, error) {
	file, err := root.Open(name)
	if err != nil {
		return Record{}, err
	}
	defer file.Close()
	return s.Scan(name, file)
}

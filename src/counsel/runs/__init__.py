"""One learning run as data: settings in, one folder with records and a manifest out."""

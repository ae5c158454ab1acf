/*
Headroom: the history of sys.dm_io_virtual_file_stats, kept in a table on the server itself.
Printed by `headroom sources capture-script sqlserver`. For SQL Server 2012 to 2022 and Azure SQL Database.

  1. Run this script in a database of your choice, once (again is harmless: what is there stays):
       sqlcmd -S SERVER -d DATABASE -E -i capture.sql
     It makes the schema headroom with the table file_stats, the procedure capture_file_stats and the view
     file_stats_csv. It reads only what the server counts anyway, and changes nothing outside that schema.

  2. Take a capture, whenever something is worth knowing, or every few minutes by a job (below):
       EXEC headroom.capture_file_stats @label = N'before the rebuild';
     @label             a name to find the capture by; none unless given
     @retention_days    captures older than so many days are deleted; 35 unless given, NULL keeps all
     @with_mount_points 0 does not ask for the mount point of each file; 1 unless given

  3. Export it as CSV, and read it where Headroom is (UTF-16 is understood):
       bcp "SELECT line FROM headroom.file_stats_csv ORDER BY line_order, capture_id" queryout file_stats.csv -S SERVER -d DATABASE -T -w
       headroom history import file_stats.csv
       headroom history intervals
     or without bcp:
       sqlcmd -S SERVER -d DATABASE -E -W -w 65535 -h -1 -u -o file_stats.csv -Q "SET NOCOUNT ON; SELECT line FROM headroom.file_stats_csv ORDER BY line_order, capture_id"
     With a password instead of the Windows account: -U USER in place of -T or -E.
     An export of the table itself (SELECT * FROM headroom.file_stats, saved as CSV) is read as well.
     Importing a longer export later adds only what is new.

  Who runs the procedure needs
     SQL Server          VIEW SERVER STATE, and VIEW ANY DEFINITION to see the names of all files
     SQL Server 2022     VIEW SERVER PERFORMANCE STATE is enough in place of VIEW SERVER STATE
     Azure SQL Database  VIEW DATABASE STATE; it shows the files of the connected database only
     and EXECUTE on it, with INSERT, SELECT and DELETE on the table where their owners differ.

  Every 5 minutes by SQL Server Agent (Azure SQL Database has none: run step 2 by sqlcmd from a scheduler):
     EXEC msdb.dbo.sp_add_job         @job_name = N'headroom file_stats';
     EXEC msdb.dbo.sp_add_jobstep     @job_name = N'headroom file_stats', @step_name = N'capture',
                                      @subsystem = N'TSQL', @database_name = N'DATABASE',
                                      @command = N'EXEC headroom.capture_file_stats;';
     EXEC msdb.dbo.sp_add_jobschedule @job_name = N'headroom file_stats', @name = N'every 5 minutes',
                                      @freq_type = 4, @freq_interval = 1,
                                      @freq_subday_type = 4, @freq_subday_interval = 5;
     EXEC msdb.dbo.sp_add_jobserver   @job_name = N'headroom file_stats';

  To remove it: DROP VIEW headroom.file_stats_csv; DROP PROCEDURE headroom.capture_file_stats;
                DROP TABLE headroom.file_stats; DROP SCHEMA headroom;
*/
SET NOCOUNT ON;
SET ANSI_NULLS ON;
SET QUOTED_IDENTIFIER ON;
GO

-- The history belongs into a database of its owner. NOEXEC skips all that follows.
IF DB_NAME() IN (N'master', N'model', N'msdb', N'tempdb')
BEGIN
    RAISERROR(N'Run this in a database of your own: sqlcmd -d DATABASE, or USE [DATABASE]. Nothing was made.', 16, 1);
    SET NOEXEC ON;
END;
GO

IF SCHEMA_ID(N'headroom') IS NULL
    EXEC (N'CREATE SCHEMA headroom;');
GO

-- One row for each file of each capture. Counters are cumulative since the server opened the file. A NULL is
-- not known: this version of the server has no such column, or the account may not see it.
IF OBJECT_ID(N'headroom.file_stats', N'U') IS NULL
BEGIN
    CREATE TABLE headroom.file_stats
    (
        capture_id                   bigint        NOT NULL,
        capture_time                 datetime2(3)  NOT NULL, -- UTC
        label                        nvarchar(128) NULL,
        server_name                  nvarchar(256) NOT NULL,
        sqlserver_start_time         datetime2(3)  NULL,     -- as the server tells it: its own time zone
        database_id                  int           NOT NULL,
        file_id                      int           NOT NULL,
        database_name                nvarchar(128) NULL,
        database_create_time         datetime2(3)  NULL,     -- ids of databases are used again
        file_name                    nvarchar(128) NULL,
        type_desc                    nvarchar(60)  NULL,
        physical_name                nvarchar(260) NULL,
        volume_mount_point           nvarchar(256) NULL,
        file_handle                  varchar(66)   NULL,     -- another one: the file was opened again
        sample_ms                    bigint        NOT NULL,
        num_of_reads                 bigint        NOT NULL,
        num_of_bytes_read            bigint        NOT NULL,
        io_stall_read_ms             bigint        NOT NULL,
        io_stall_queued_read_ms      bigint        NULL,     -- from SQL Server 2014 on; part of io_stall_read_ms
        num_of_writes                bigint        NOT NULL,
        num_of_bytes_written         bigint        NOT NULL,
        io_stall_write_ms            bigint        NOT NULL,
        io_stall_queued_write_ms     bigint        NULL,     -- from SQL Server 2014 on; part of io_stall_write_ms
        size_on_disk_bytes           bigint        NULL,
        num_of_pushed_reads          bigint        NULL,     -- from SQL Server 2022 on
        num_of_pushed_bytes_returned bigint        NULL      -- from SQL Server 2022 on
    );
    CREATE UNIQUE CLUSTERED INDEX file_stats_by_time
        ON headroom.file_stats (capture_time, capture_id, database_id, file_id);
    CREATE NONCLUSTERED INDEX file_stats_by_capture
        ON headroom.file_stats (capture_id);
END;
GO

-- CREATE OR ALTER is not known before SQL Server 2016: an empty procedure is made and altered.
IF OBJECT_ID(N'headroom.capture_file_stats', N'P') IS NULL
    EXEC (N'CREATE PROCEDURE headroom.capture_file_stats AS RETURN 0;');
GO

ALTER PROCEDURE headroom.capture_file_stats
    @label             nvarchar(128) = NULL,
    @retention_days    int           = 35,
    @with_mount_points bit           = 1
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;

    -- 5 is Azure SQL Database: no sys.master_files, no mount points, one database.
    DECLARE @azure bit;
    SET @azure = CASE WHEN CONVERT(int, SERVERPROPERTY(N'EngineEdition')) = 5 THEN 1 ELSE 0 END;

    -- Columns that came with a later version are asked for by name, so that the version need not be known.
    DECLARE @queued nvarchar(400), @pushed nvarchar(400);
    SET @queued = N', NULL, NULL';
    SET @pushed = N', NULL, NULL';
    IF EXISTS (SELECT 1 FROM sys.all_columns
               WHERE object_id = OBJECT_ID(N'sys.dm_io_virtual_file_stats') AND name = N'io_stall_queued_read_ms')
        SET @queued = N', vfs.io_stall_queued_read_ms, vfs.io_stall_queued_write_ms';
    IF EXISTS (SELECT 1 FROM sys.all_columns
               WHERE object_id = OBJECT_ID(N'sys.dm_io_virtual_file_stats') AND name = N'num_of_pushed_reads')
        SET @pushed = N', vfs.num_of_pushed_reads, vfs.num_of_pushed_bytes_returned';

    DECLARE @files nvarchar(1000), @volumes nvarchar(400), @mount_point nvarchar(100);
    SET @volumes = N'';
    SET @mount_point = N'NULL';
    IF @azure = 1
        SET @files = N'
    FROM sys.dm_io_virtual_file_stats(DB_ID(), NULL) AS vfs
    LEFT JOIN sys.database_files AS f ON f.file_id = vfs.file_id
    LEFT JOIN sys.databases AS d ON d.name = DB_NAME()';
    ELSE
    BEGIN
        SET @files = N'
    FROM sys.dm_io_virtual_file_stats(NULL, NULL) AS vfs
    LEFT JOIN sys.master_files AS f ON f.database_id = vfs.database_id AND f.file_id = vfs.file_id
    LEFT JOIN sys.databases AS d ON d.database_id = vfs.database_id';
        IF @with_mount_points = 1
        BEGIN
            SET @volumes = N'
    OUTER APPLY sys.dm_os_volume_stats(vfs.database_id, vfs.file_id) AS v';
            SET @mount_point = N'v.volume_mount_point';
        END;
    END;

    -- The counters first, into a table of this session: the lock on the history is held for its INSERT only.
    CREATE TABLE #captured
    (
        sqlserver_start_time         datetime2(3)  NULL,
        database_id                  int           NOT NULL,
        file_id                      int           NOT NULL,
        database_name                nvarchar(128) COLLATE DATABASE_DEFAULT NULL,
        database_create_time         datetime2(3)  NULL,
        file_name                    nvarchar(128) COLLATE DATABASE_DEFAULT NULL,
        type_desc                    nvarchar(60)  COLLATE DATABASE_DEFAULT NULL,
        physical_name                nvarchar(260) COLLATE DATABASE_DEFAULT NULL,
        volume_mount_point           nvarchar(256) COLLATE DATABASE_DEFAULT NULL,
        file_handle                  varchar(66)   COLLATE DATABASE_DEFAULT NULL,
        sample_ms                    bigint        NOT NULL,
        num_of_reads                 bigint        NOT NULL,
        num_of_bytes_read            bigint        NOT NULL,
        io_stall_read_ms             bigint        NOT NULL,
        num_of_writes                bigint        NOT NULL,
        num_of_bytes_written         bigint        NOT NULL,
        io_stall_write_ms            bigint        NOT NULL,
        size_on_disk_bytes           bigint        NULL,
        io_stall_queued_read_ms      bigint        NULL,
        io_stall_queued_write_ms     bigint        NULL,
        num_of_pushed_reads          bigint        NULL,
        num_of_pushed_bytes_returned bigint        NULL
    );

    DECLARE @capture_time datetime2(3), @query nvarchar(4000);
    SET @query = N'
    SELECT (SELECT MAX(i.sqlserver_start_time) FROM sys.dm_os_sys_info AS i),
           vfs.database_id, vfs.file_id, DB_NAME(vfs.database_id), d.create_date,
           f.name, f.type_desc, f.physical_name, ' + @mount_point + N',
           CONVERT(varchar(66), vfs.file_handle, 1), vfs.sample_ms,
           vfs.num_of_reads, vfs.num_of_bytes_read, vfs.io_stall_read_ms,
           vfs.num_of_writes, vfs.num_of_bytes_written, vfs.io_stall_write_ms, vfs.size_on_disk_bytes'
        + @queued + @pushed + @files + @volumes + N';';
    SET @capture_time = SYSUTCDATETIME();
    INSERT INTO #captured
    (
        sqlserver_start_time, database_id, file_id, database_name, database_create_time,
        file_name, type_desc, physical_name, volume_mount_point,
        file_handle, sample_ms,
        num_of_reads, num_of_bytes_read, io_stall_read_ms,
        num_of_writes, num_of_bytes_written, io_stall_write_ms, size_on_disk_bytes,
        io_stall_queued_read_ms, io_stall_queued_write_ms, num_of_pushed_reads, num_of_pushed_bytes_returned
    )
    EXEC sys.sp_executesql @query;

    BEGIN TRANSACTION;
    DECLARE @capture_id bigint;
    SELECT @capture_id = ISNULL(MAX(h.capture_id), 0) + 1
    FROM headroom.file_stats AS h WITH (TABLOCKX, HOLDLOCK);
    INSERT INTO headroom.file_stats
    (
        capture_id, capture_time, label, server_name, sqlserver_start_time,
        database_id, file_id, database_name, database_create_time,
        file_name, type_desc, physical_name, volume_mount_point, file_handle, sample_ms,
        num_of_reads, num_of_bytes_read, io_stall_read_ms, io_stall_queued_read_ms,
        num_of_writes, num_of_bytes_written, io_stall_write_ms, io_stall_queued_write_ms,
        size_on_disk_bytes, num_of_pushed_reads, num_of_pushed_bytes_returned
    )
    SELECT @capture_id, @capture_time, @label,
           ISNULL(CONVERT(nvarchar(256), SERVERPROPERTY(N'ServerName')), N'unknown'), c.sqlserver_start_time,
           c.database_id, c.file_id, c.database_name, c.database_create_time,
           c.file_name, c.type_desc, c.physical_name, c.volume_mount_point, c.file_handle, c.sample_ms,
           c.num_of_reads, c.num_of_bytes_read, c.io_stall_read_ms, c.io_stall_queued_read_ms,
           c.num_of_writes, c.num_of_bytes_written, c.io_stall_write_ms, c.io_stall_queued_write_ms,
           c.size_on_disk_bytes, c.num_of_pushed_reads, c.num_of_pushed_bytes_returned
    FROM #captured AS c;
    COMMIT TRANSACTION;

    -- In small steps, so that neither the log nor the locks grow.
    IF @retention_days IS NOT NULL
    BEGIN
        DECLARE @deleted int;
        SET @deleted = 1;
        WHILE @deleted > 0
        BEGIN
            DELETE TOP (2000) FROM headroom.file_stats
            WHERE capture_time < DATEADD(DAY, -@retention_days, @capture_time);
            SET @deleted = @@ROWCOUNT;
        END;
    END;
END;
GO

IF OBJECT_ID(N'headroom.file_stats_csv', N'V') IS NOT NULL
    DROP VIEW headroom.file_stats_csv;
GO

-- The table as lines of CSV, the heading first: the same whatever tool, language and date format they pass
-- through. Names stand in quotes, a quote within them is doubled; a NULL is an empty cell.
CREATE VIEW headroom.file_stats_csv
AS
SELECT CONVERT(tinyint, 0) AS line_order,
       CONVERT(bigint, 0) AS capture_id,
       CONVERT(nvarchar(4000),
           N'capture_id,capture_time,label,server_name,sqlserver_start_time,database_id,file_id,database_name,'
         + N'database_create_time,file_name,type_desc,physical_name,volume_mount_point,file_handle,sample_ms,'
         + N'num_of_reads,num_of_bytes_read,io_stall_read_ms,io_stall_queued_read_ms,'
         + N'num_of_writes,num_of_bytes_written,io_stall_write_ms,io_stall_queued_write_ms,'
         + N'size_on_disk_bytes,num_of_pushed_reads,num_of_pushed_bytes_returned') AS line
UNION ALL
SELECT CONVERT(tinyint, 1),
       h.capture_id,
       CONVERT(nvarchar(4000),
           CONVERT(nvarchar(20), h.capture_id)
         + N',' + CONVERT(nvarchar(30), h.capture_time, 126)
         + N',' + ISNULL(N'"' + REPLACE(h.label, N'"', N'""') + N'"', N'')
         + N',"' + REPLACE(h.server_name, N'"', N'""') + N'"'
         + N',' + ISNULL(CONVERT(nvarchar(30), h.sqlserver_start_time, 126), N'')
         + N',' + CONVERT(nvarchar(20), h.database_id)
         + N',' + CONVERT(nvarchar(20), h.file_id)
         + N',' + ISNULL(N'"' + REPLACE(h.database_name, N'"', N'""') + N'"', N'')
         + N',' + ISNULL(CONVERT(nvarchar(30), h.database_create_time, 126), N'')
         + N',' + ISNULL(N'"' + REPLACE(h.file_name, N'"', N'""') + N'"', N'')
         + N',' + ISNULL(N'"' + REPLACE(h.type_desc, N'"', N'""') + N'"', N'')
         + N',' + ISNULL(N'"' + REPLACE(h.physical_name, N'"', N'""') + N'"', N'')
         + N',' + ISNULL(N'"' + REPLACE(h.volume_mount_point, N'"', N'""') + N'"', N'')
         + N',' + ISNULL(h.file_handle, N'')
         + N',' + CONVERT(nvarchar(20), h.sample_ms)
         + N',' + CONVERT(nvarchar(20), h.num_of_reads)
         + N',' + CONVERT(nvarchar(20), h.num_of_bytes_read)
         + N',' + CONVERT(nvarchar(20), h.io_stall_read_ms)
         + N',' + ISNULL(CONVERT(nvarchar(20), h.io_stall_queued_read_ms), N'')
         + N',' + CONVERT(nvarchar(20), h.num_of_writes)
         + N',' + CONVERT(nvarchar(20), h.num_of_bytes_written)
         + N',' + CONVERT(nvarchar(20), h.io_stall_write_ms)
         + N',' + ISNULL(CONVERT(nvarchar(20), h.io_stall_queued_write_ms), N'')
         + N',' + ISNULL(CONVERT(nvarchar(20), h.size_on_disk_bytes), N'')
         + N',' + ISNULL(CONVERT(nvarchar(20), h.num_of_pushed_reads), N'')
         + N',' + ISNULL(CONVERT(nvarchar(20), h.num_of_pushed_bytes_returned), N''))
FROM headroom.file_stats AS h;
GO

SET NOEXEC OFF;
GO

! ranks: 1 2 3 4 7
! needs: fortran f08
! Files from Fortran, with `use mpi_f08`: open, views, all kinds of access, hints, error handlers.
! The handler is a module's procedure: one inside the program would need an executable stack.
module hearing
  use mpi_f08
  implicit none
  integer :: heard = 0, last_error = 0
  type(MPI_File) :: last_file
contains
  subroutine hear(file, error)
    type(MPI_File) :: file
    integer :: error
    heard = heard + 1
    last_file = file
    last_error = error
  end subroutine
end module

program fortran_f08
  use hearing
  use mpi_f08
  implicit none
  character(*), parameter :: name = 'fortran_f08'
  integer, parameter :: block = 10, blocks = 20
  integer :: passed = 0, failed = 0, rank, ranks, code, amode, i
  character(1024) :: directory
  character(1100) :: path

  call get_command_argument(1, directory)
  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, code)
  path = trim(directory) // '/' // name // '.data'
  call manage()
  call access()
  call types()
  call hints()
  call handlers()
  call check_print()
  call MPI_Finalize(code)
  if (failed /= 0) stop 1

contains

  subroutine manage()
    type(MPI_File) :: file
    integer(MPI_OFFSET_KIND) :: size
    type(MPI_Group) :: group
    integer :: members
    if (rank == 0) call MPI_File_delete(path, MPI_INFO_NULL, code)
    call MPI_Barrier(MPI_COMM_WORLD, code)
    call MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, file, code)
    call check_class(code, MPI_ERR_NO_SUCH_FILE, 'a file that is not there')
    call MPI_File_open(MPI_COMM_WORLD, path, ior(MPI_MODE_RDWR, MPI_MODE_CREATE), MPI_INFO_NULL, file, code)
    call check_ok(code, 'open')
    call MPI_File_get_amode(file, amode, code)
    call check(amode == ior(MPI_MODE_RDWR, MPI_MODE_CREATE), 'get_amode')
    call MPI_File_set_size(file, 5000000000_MPI_OFFSET_KIND, code)
    call check_ok(code, 'set_size')
    call MPI_File_get_size(file, size, code)
    call check(size == 5000000000_MPI_OFFSET_KIND, 'get_size past 4 GiB')
    call MPI_File_get_group(file, group, code)
    call MPI_Group_size(group, members, code)
    call check(members == ranks, 'get_group')
    call MPI_Group_free(group, code)
    call MPI_File_close(file, code)
    call check_ok(code, 'close')
    call check(file == MPI_FILE_NULL, 'close leaves the null handle')
    call MPI_Barrier(MPI_COMM_WORLD, code)
    if (rank == 0) then
      call MPI_File_delete(path, MPI_INFO_NULL, code)
      call check_ok(code, 'delete')
    end if
    call MPI_Barrier(MPI_COMM_WORLD, code)
  end subroutine

  subroutine access()
    type(MPI_File) :: file
    type(MPI_Datatype) :: piece, tile, etype, filetype
    type(MPI_Status) :: status
    type(MPI_Request) :: request
    integer, asynchronous :: words(block * blocks), back(block * blocks)
    integer :: count
    integer(MPI_OFFSET_KIND) :: disp, at
    character(MPI_MAX_DATAREP_STRING) :: representation
    do i = 1, block * blocks
      words(i) = rank * 100000 + i
    end do
    call MPI_Type_contiguous(block, MPI_INTEGER, piece, code)
    call MPI_Type_create_resized(piece, 0_MPI_ADDRESS_KIND, int(4 * block * ranks, MPI_ADDRESS_KIND), tile, code)
    call MPI_Type_commit(tile, code)
    call MPI_File_open(MPI_COMM_WORLD, path, ior(MPI_MODE_RDWR, MPI_MODE_CREATE), MPI_INFO_NULL, file, code)
    disp = 4 * block * rank
    call MPI_File_set_view(file, disp, MPI_INTEGER, tile, 'native', MPI_INFO_NULL, code)
    call check_ok(code, 'set_view')
    call MPI_File_get_view(file, at, etype, filetype, representation, code)
    call check(at == disp .and. etype == MPI_INTEGER .and. representation == 'native', 'get_view')

    call MPI_File_write_all(file, words, block * blocks, MPI_INTEGER, status, code)
    call check_ok(code, 'write_all')
    call MPI_Get_count(status, MPI_INTEGER, count, code)
    call check(count == block * blocks, 'the status of write_all')
    call MPI_File_get_position(file, at, code)
    call check(at == block * blocks, 'get_position')
    call MPI_File_sync(file, code)
    call check_ok(code, 'sync')

    back = 0
    call MPI_File_iread_at(file, 0_MPI_OFFSET_KIND, back, block * blocks, MPI_INTEGER, request, code)
    call check_ok(code, 'iread_at')
    call MPI_Wait(request, status, code)
    call check_ok(code, 'wait')
    call MPI_Get_count(status, MPI_INTEGER, count, code)
    call check(count == block * blocks .and. all(back == words), 'iread_at reads what was written')
    call check(request == MPI_REQUEST_NULL, 'wait frees the request')

    back = 0
    call MPI_File_seek(file, 0_MPI_OFFSET_KIND, MPI_SEEK_SET, code)
    call MPI_File_read_all_begin(file, back, block * blocks, MPI_INTEGER, code)
    call check_ok(code, 'read_all_begin')
    call MPI_File_read_all_end(file, back, status, code)
    call check(code == MPI_SUCCESS .and. all(back == words), 'read_all_end')

    back = 0
    call MPI_File_iread_at_all(file, 0_MPI_OFFSET_KIND, back, block * blocks, MPI_INTEGER, request, code)
    call MPI_Wait(request, MPI_STATUS_IGNORE, code)
    call check(code == MPI_SUCCESS .and. all(back == words), 'iread_at_all')

    call MPI_File_set_view(file, 0_MPI_OFFSET_KIND, MPI_INTEGER, MPI_INTEGER, 'native', MPI_INFO_NULL, code)
    call MPI_File_seek_shared(file, 0_MPI_OFFSET_KIND, MPI_SEEK_SET, code)
    back(1) = 0
    call MPI_File_write_ordered(file, [rank + 1], 1, MPI_INTEGER, status, code)
    call check_ok(code, 'write_ordered')
    call MPI_File_sync(file, code)
    call MPI_File_read_at(file, int(rank, MPI_OFFSET_KIND), back, 1, MPI_INTEGER, status, code)
    call check(code == MPI_SUCCESS .and. back(1) == rank + 1, 'write_ordered, read_at')
    call MPI_File_read_at(file, int(block * blocks * ranks, MPI_OFFSET_KIND), back, 1, MPI_INTEGER, status, code)
    call MPI_Get_count(status, MPI_INTEGER, count, code)
    call check(count == 0, 'nothing past the end')
    call MPI_File_close(file, code)
    call check_ok(code, 'close')
    call MPI_Type_free(tile, code)
    call MPI_Type_free(piece, code)
    if (rank == 0) call MPI_File_delete(path, MPI_INFO_NULL, code)
    call MPI_Barrier(MPI_COMM_WORLD, code)
  end subroutine

  subroutine types()
    type(MPI_File) :: file
    type(MPI_Datatype) :: made
    integer :: words(2 * block), back(block), step
    integer(MPI_OFFSET_KIND) :: place
    include 'type_cycles.inc'
  end subroutine

  subroutine hints()
    type(MPI_File) :: file
    type(MPI_Info) :: given, used
    character(MPI_MAX_INFO_VAL) :: value
    logical :: there
    call MPI_Info_create(given, code)
    call MPI_Info_set(given, 'cb_buffer_size', '1048576', code)
    call MPI_File_open(MPI_COMM_WORLD, path, ior(ior(MPI_MODE_RDWR, MPI_MODE_CREATE), MPI_MODE_DELETE_ON_CLOSE), given, file, code)
    call check_ok(code, 'open with hints')
    call MPI_File_get_info(file, used, code)
    call check_ok(code, 'get_info')
    call MPI_Info_get(used, 'cb_buffer_size', MPI_MAX_INFO_VAL, value, there, code)
    if (there) call check(value == '1048576', 'cb_buffer_size is as given')
    call MPI_Info_free(used, code)
    call MPI_File_set_info(file, given, code)
    call check_ok(code, 'set_info')
    call MPI_Info_free(given, code)
    call MPI_File_close(file, code)
  end subroutine

  subroutine handlers()
    type(MPI_File) :: file
    type(MPI_Errhandler) :: handler, found
    type(MPI_Status) :: status
    integer :: words(1)
    call MPI_File_open(MPI_COMM_WORLD, path, ior(ior(MPI_MODE_RDWR, MPI_MODE_CREATE), MPI_MODE_DELETE_ON_CLOSE), MPI_INFO_NULL, &
                       file, code)
    call MPI_File_create_errhandler(hear, handler, code)
    call check_ok(code, 'create_errhandler')
    call MPI_File_set_errhandler(file, handler, code)
    call check_ok(code, 'set_errhandler')
    call MPI_File_get_errhandler(file, found, code)
    call check(found == handler, 'get_errhandler')
    call MPI_Errhandler_free(found, code)
    heard = 0
    call MPI_File_seek(file, -5_MPI_OFFSET_KIND, MPI_SEEK_SET, code)
    call check(code /= MPI_SUCCESS, 'a negative position is refused')
    call check(heard == 1 .and. last_file == file .and. last_error == code, 'the handler was called with file and error')
    call MPI_File_call_errhandler(file, MPI_ERR_OTHER, code)
    call check(heard == 2, 'the handler was called again')
    call MPI_File_set_errhandler(file, MPI_ERRORS_RETURN, code)
    call MPI_File_seek(file, -5_MPI_OFFSET_KIND, MPI_SEEK_SET, code)
    call check(code /= MPI_SUCCESS .and. heard == 2, 'errors return again')
    call MPI_File_read_at(file, 0_MPI_OFFSET_KIND, words, 1, MPI_INTEGER, status, code)
    call check_ok(code, 'the file still works')
    call MPI_Errhandler_free(handler, code)
    call MPI_File_close(file, code)
    call check_ok(code, 'close')
  end subroutine

  include 'check.inc'
end program

! ranks: 1 2 3 4 7
! needs: fortran f08
! Data representations that Fortran programs register, with `use mpi_f08`: datatypes are
! structures, buffers C addresses.
module masks
  use, intrinsic :: iso_c_binding
  use mpi_f08
  implicit none
contains
  subroutine mask_in(user, datatype, count, filed, position, state, code) bind(c)
    type(c_ptr), value :: user, filed
    type(MPI_Datatype) :: datatype
    integer :: count, code
    integer(MPI_OFFSET_KIND) :: position
    integer(MPI_ADDRESS_KIND) :: state
    integer, pointer :: to(:), from(:)
    call c_f_pointer(user, to, [position + count])
    call c_f_pointer(filed, from, [count])
    to(position + 1:position + count) = ieor(from, int(state))
    code = merge(MPI_SUCCESS, MPI_ERR_TYPE, datatype == MPI_INTEGER)
  end subroutine

  subroutine mask_out(user, datatype, count, filed, position, state, code) bind(c)
    type(c_ptr), value :: user, filed
    type(MPI_Datatype) :: datatype
    integer :: count, code
    integer(MPI_OFFSET_KIND) :: position
    integer(MPI_ADDRESS_KIND) :: state
    integer, pointer :: from(:), to(:)
    call c_f_pointer(user, from, [position + count])
    call c_f_pointer(filed, to, [count])
    to = ieor(from(position + 1:position + count), int(state))
    code = merge(MPI_SUCCESS, MPI_ERR_TYPE, datatype == MPI_INTEGER)
  end subroutine

  subroutine extent_of(datatype, extent, state, code) bind(c)
    type(MPI_Datatype) :: datatype
    integer(MPI_ADDRESS_KIND) :: extent, state
    integer :: code
    extent = 4
    code = merge(MPI_SUCCESS, MPI_ERR_TYPE, datatype == MPI_INTEGER)
  end subroutine
end module

program fortran_datarep_f08
  use masks
  use mpi_f08
  implicit none
  character(*), parameter :: name = 'fortran_datarep_f08'
  integer, parameter :: words = 100, mask = 255
  integer :: passed = 0, failed = 0, rank, code, i
  type(MPI_File) :: file
  type(MPI_Request) :: request
  type(MPI_Status) :: status
  integer, asynchronous :: data(words), back(words)
  integer(MPI_OFFSET_KIND) :: mine
  character(1024) :: directory

  call get_command_argument(1, directory)
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Register_datarep('masked  ', mask_in, mask_out, extent_of, int(mask, MPI_ADDRESS_KIND), code)
  call check_ok(code, 'register')
  call MPI_Register_datarep('masked', mask_in, mask_out, extent_of, 0_MPI_ADDRESS_KIND, code)
  call check_class(code, MPI_ERR_DUP_DATAREP, 'the name is taken')
  call MPI_Register_datarep('plain', MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, extent_of, 0_MPI_ADDRESS_KIND)
  call MPI_File_open(MPI_COMM_WORLD, trim(directory) // '/' // name, ior(MPI_MODE_RDWR, MPI_MODE_CREATE), &
                     MPI_INFO_NULL, file, code)
  call check_ok(code, 'open')

  mine = 4 * words * rank
  data = [(1000 * rank + i, i = 1, words)]
  call MPI_File_set_view(file, mine, MPI_INTEGER, MPI_INTEGER, 'masked', MPI_INFO_NULL, code)
  call check_ok(code, 'set_view')
  call MPI_File_write_at_all(file, 0_MPI_OFFSET_KIND, data, words, MPI_INTEGER, status, code)
  call check_ok(code, 'write_at_all')
  back = 0
  call MPI_File_iread_at(file, 0_MPI_OFFSET_KIND, back, words, MPI_INTEGER, request, code)
  call MPI_Wait(request, status, code)
  call check_ok(code, 'iread_at')
  call check(all(back == data), 'what was written is read')
  call MPI_File_set_view(file, mine, MPI_INTEGER, MPI_INTEGER, 'plain', MPI_INFO_NULL, code)
  call check_ok(code, 'set_view without conversion')
  call MPI_File_read_at_all(file, 0_MPI_OFFSET_KIND, back, words, MPI_INTEGER, MPI_STATUS_IGNORE, code)
  call check_ok(code, 'read_at_all')
  call check(all(ieor(back, mask) == data), 'the file holds the converted form')

  call MPI_File_close(file, code)
  call check_ok(code, 'close')
  call check_print()
  call MPI_Finalize(code)
  if (failed /= 0) stop 1

contains
  include 'check.inc'
end program

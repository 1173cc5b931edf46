! ranks: 1 2 3 4 7
! needs: fortran
! Files from Fortran, with `use mpi`: open, views, all kinds of access, hints, error handlers.
! The handler is a module's procedure: one inside the program would need an executable stack.
module hearing
  implicit none
  integer :: heard = 0, last_error = 0
  integer :: last_file
contains
  subroutine hear(file, error)
    integer :: file
    integer :: error
    heard = heard + 1
    last_file = file
    last_error = error
  end subroutine
end module

program fortran_mpi
  use hearing
  use mpi
  implicit none
  character(*), parameter :: name = 'fortran_mpi'
  include 'integer_handles.inc'
end program

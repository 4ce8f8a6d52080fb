import{db as o,eb as r,fb as m,gb as p}from"./chunk-RCSKJ5CI.js";export{p as GroupChoice,r as Permissions,m as fits,o as groupName};

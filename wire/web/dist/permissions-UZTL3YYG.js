import{eb as o,fb as r,gb as m,hb as p}from"./chunk-G4ZQ2I4F.js";export{p as GroupChoice,r as Permissions,m as fits,o as groupName};

import{eb as o,fb as r,gb as m,hb as p}from"./chunk-HJZWLFE7.js";export{p as GroupChoice,r as Permissions,m as fits,o as groupName};

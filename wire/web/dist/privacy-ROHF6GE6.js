import{a as o}from"./chunk-V6R4DCRU.js";import"./chunk-KVKCHTYI.js";import"./chunk-YOHDM7XK.js";import"./chunk-2ASQJOHF.js";export{o as Privacy};

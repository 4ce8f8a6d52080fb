import{a as o}from"./chunk-T2ADT3PF.js";import"./chunk-HL6RA6RA.js";import"./chunk-D666B7Q3.js";import"./chunk-JM4UGWP5.js";export{o as Privacy};

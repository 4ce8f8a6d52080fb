import{a as o}from"./chunk-QOCG6ELG.js";import"./chunk-PFR6XGJH.js";import"./chunk-74IXTQGT.js";export{o as Privacy};
